# run: opt --pass lower
# Lowering leaves neither assumptions nor arbitrary values.


@T.prim_func
def f(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    for io, ii in T.grid(4, 4):
        T.assume(io * 4 + ii < 14 or A[io, ii] == T.undef(dtype="int32"))
    for io, ii in T.grid(4, 4):
        with T.block("B"):
            vio, vii = T.axis.remap("SS", [io, ii])
            B[vio, vii] = 2 * A[vio, vii]
    for io, ii in T.grid(4, 4):
        with T.block("B_padding"):
            vio, vii = T.axis.remap("SS", [io, ii])
            T.where(io == 3 and ii >= 2)
            B[vio, vii] = T.undef(dtype="int32")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
        A_1 = T.decl_buffer((16,), "int32", data=A.data)
        B_1 = T.decl_buffer((16,), "int32", data=B.data)
        for io in range(16):
            B_1[io] = 2 * A_1[io]
