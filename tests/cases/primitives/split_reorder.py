# run: opt
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10, 9), "float32"), C: T.Buffer((6, 9), "float32")):
    for i, j, k in T.grid(6, 9, 10):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- schedule
def apply_trace(sch: tir.Schedule) -> None:
    b0 = sch.get_block(name="C", func_name="main")
    l1, l2, l3 = sch.get_loops(block=b0)
    l4, l5 = sch.split(loop=l2, factors=[None, 4])
    sch.reorder(l4, l1, l3, l5)
    sch.vectorize(loop=l5)
    sch.parallel(loop=l4)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10, 9), "float32"), C: T.Buffer((6, 9), "float32")):
        for j_0 in T.parallel(3):
            for i, k in T.grid(6, 10):
                for j_1 in T.vectorized(4):
                    with T.block("C"):
                        vi = T.axis.spatial(6, i)
                        vj = T.axis.spatial(9, j_0 * 4 + j_1)
                        vk = T.axis.reduce(10, k)
                        T.where(j_0 * 4 + j_1 < 9)
                        with T.init():
                            C[vi, vj] = T.float32(0.0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
