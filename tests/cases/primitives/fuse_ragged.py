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
b0 = sch.get_block(name="C")
l1, l2, l3 = sch.get_loops(b0)
l4 = sch.fuse(l1, l2)
l5, l6 = sch.split(l4, factors=[None, 16])
sch.unroll(l6)
sch.bind(l5, thread_axis="threadIdx.x")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10, 9), "float32"), C: T.Buffer((6, 9), "float32")):
        for i_j_fused_0 in T.thread_binding(4, thread="threadIdx.x"):
            for i_j_fused_1 in T.unroll(16):
                for k in range(10):
                    with T.block("C"):
                        vi = T.axis.spatial(6, (i_j_fused_0 * 16 + i_j_fused_1) // 9)
                        vj = T.axis.spatial(9, (i_j_fused_0 * 16 + i_j_fused_1) % 9)
                        vk = T.axis.reduce(10, k)
                        T.where(i_j_fused_0 * 16 + i_j_fused_1 < 54)
                        with T.init():
                            C[vi, vj] = T.float32(0.0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
