# run: opt
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
    for io in T.parallel(4):
        for ii in range(4):
            with T.block("C"):
                vi = T.axis.spatial(16, io * 4 + ii)
                C[vi] = B[vi] + 1.0

# ---- schedule
sch.compute_at("B", "io")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        B = T.alloc_buffer((16,), "float32")
        for io in T.parallel(4):
            for ax0 in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(16, io * 4 + ax0)
                    B[vi] = A[vi] * T.float32(2.0)
            for ii in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(16, io * 4 + ii)
                    C[vi] = B[vi] + T.float32(1.0)
