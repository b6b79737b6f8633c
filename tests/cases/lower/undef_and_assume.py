# run: opt --pass lower_blocks,flatten_buffer
# What a function knows and permits stays until it is lowered to code.


@T.prim_func
def f(A: T.Buffer((14,), "int32"), B: T.Buffer((4, 4), "int32")):
    for io, ii in T.grid(4, 4):
        with T.block("B"):
            vio, vii = T.axis.remap("SS", [io, ii])
            T.assume(vio < 4)
            B[vio, vii] = T.if_then_else(
                vio * 4 + vii < 14, A[T.min(vio * 4 + vii, 13)], T.undef(dtype="int32")
            )

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((14,), "int32"), B: T.Buffer((4, 4), "int32")):
        B_1 = T.decl_buffer((16,), "int32", data=B.data)
        for io, ii in T.grid(4, 4):
            T.assume(io < 4)
            B_1[io * 4 + ii] = T.if_then_else(io * 4 + ii < 14, A[T.min(io * 4 + ii, 13)], T.undef(dtype="int32"))
