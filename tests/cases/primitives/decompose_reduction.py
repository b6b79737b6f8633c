# run: opt
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((3, 6), "float32"), C: T.Buffer((4, 3), "float32")):
    for i, j, k in T.grid(4, 3, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]

# ---- schedule
b0 = sch.get_block(name="C", func_name="main")
l1, l2, l3 = sch.get_loops(block=b0)
b4 = sch.decompose_reduction(block=b0, loop=l1)
l5, l6, l7 = sch.get_loops(block=b0)
sch.parallel(loop=l5)
sch.annotate(block_or_loop="C_init", ann_key="pragma_note", ann_val=1)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((3, 6), "float32"), C: T.Buffer((4, 3), "float32")):
        for i, j in T.grid(4, 3):
            with T.block("C_init"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"pragma_note": 1})
                C[vi, vj] = T.float32(0.0)
        for i in T.parallel(4):
            for j, k in T.grid(3, 6):
                with T.block("C_update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
