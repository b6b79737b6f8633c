# run: opt
# The newer dialect is read, the older one is printed.
from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def f(a: T.handle, b: T.handle):
    T.func_attr({"tir.noalias": True})
    A = T.match_buffer(a, (14,), "int32")
    B = T.match_buffer(b, (4, 4), "int32")
    with T.sblock("root"):
        C = T.sblock_alloc_buffer((14,), "int32")
        for i in range(14):
            with T.sblock("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = A[vi] + 1
        for io, ii in T.grid(4, 4):
            with T.sblock("B"):
                vio, vii = T.axis.remap("SS", [io, ii])
                x: T.let[T.int32] = vio * 4 + vii
                B[vio, vii] = T.if_then_else(x < 14, C[T.min(x, 13)], 0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((14,), "int32"), B: T.Buffer((4, 4), "int32")):
        T.func_attr({"tir.noalias": True})
        C = T.alloc_buffer((14,), "int32")
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = A[vi] + 1
        for io, ii in T.grid(4, 4):
            with T.block("B"):
                vio, vii = T.axis.remap("SS", [io, ii])
                x: T.int32 = vio * 4 + vii
                B[vio, vii] = T.if_then_else(x < 14, C[T.min(x, 13)], 0)
