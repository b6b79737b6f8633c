# run: opt --pass lower
# Constants become flat like any other memory, and keep what they hold.


@T.prim_func
def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
    weights = T.allocate_const([1, 0.5, 2.0, -1.5, 3, 0.0], "float32", [2, 3])
    keep = T.allocate_const([True, False, True], "bool", [3])
    keep_1 = T.decl_buffer((3,), "bool", data=keep)
    for i, j in T.grid(2, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(keep_1[vj], A[vi, vj] * weights[vi, vj], T.float32(7))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
        A_1 = T.decl_buffer((6,), "float32", data=A.data)
        B_1 = T.decl_buffer((6,), "float32", data=B.data)
        weights = T.allocate_const([1.0, 0.5, 2.0, -1.5, 3.0, 0.0], "float32", [6])
        keep = T.allocate_const([True, False, True], "bool", [3])
        keep_1 = T.decl_buffer((3,), "bool", data=keep.data)
        for i, j in T.grid(2, 3):
            B_1[i * 3 + j] = T.if_then_else(keep_1[j], A_1[i * 3 + j] * weights[i * 3 + j], T.float32(7.0))
