# run: opt --pass lower_blocks
@T.prim_func
def f(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for io, ii in T.grid(4, 4):
        with T.block("B"):
            vi = T.axis.spatial(14, io * 4 + ii)
            T.where(io * 4 + ii < 14)
            B[vi] = A[vi] * 3.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
        for io, ii in T.grid(4, 4):
            if io * 4 + ii < 14:
                B[io * 4 + ii] = A[io * 4 + ii] * T.float32(3.0)
