# run: opt
@T.prim_func
def main(A: T.Buffer((8, 6), "float32"), D: T.Buffer((8, 6), "float32"), E: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi, 0] * 2.0
    for i in range(8):
        with T.block("E"):
            vi = T.axis.spatial(8, i)
            E[vi] = A[vi, 1]
        for j in range(6):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[vi, vj] + B[vi]

# ---- schedule
b0 = sch.get_block(name="B", func_name="main")
b1 = sch.get_block(name="D", func_name="main")
l2, l3 = sch.get_loops(block=b1)
sch.compute_at(block=b0, loop=l2, preserve_unit_loops=True, index=0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 6), "float32"), D: T.Buffer((8, 6), "float32"), E: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            for ax0 in range(1):
                with T.block("B"):
                    vi = T.axis.spatial(8, i + ax0)
                    B[vi] = A[vi, 0] * T.float32(2.0)
            with T.block("E"):
                vi = T.axis.spatial(8, i)
                E[vi] = A[vi, 1]
            for j in range(6):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = A[vi, vj] + B[vi]
