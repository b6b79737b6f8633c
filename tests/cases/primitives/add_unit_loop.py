# run: opt
# A loop of one iteration, around a block and around a loop; it can be fused, reordered and bound.
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32"), C: T.Buffer((1,), "float32")):
    for i, j in T.grid(6, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    with T.block("C"):
        C[0] = A[0, 0]

# ---- schedule
outer = sch.add_unit_loop("i")
inner = sch.add_unit_loop(block="B")
sch.reorder(inner, "j")
sch.fuse(outer, "i")
only = sch.add_unit_loop(block_or_loop=sch.get_block("C"))
sch.bind(only, "threadIdx.x")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32"), C: T.Buffer((1,), "float32")):
        for u_i_fused, u, j in T.grid(6, 1, 10):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [u_i_fused, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for u in T.thread_binding(1, thread="threadIdx.x"):
            with T.block("C"):
                C[0] = A[0, 0]
