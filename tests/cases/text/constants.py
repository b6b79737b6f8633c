# run: opt
# Constant data as lists and in base 64 (where a list cannot say the bits), in either form of scope.


@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int8"), C: T.Buffer((2, 2), "float16")):
    a = T.allocate_const([0, 0.10000000149011612, 1e30, float("-inf")], "float32", [4])
    a_1 = T.decl_buffer((4,), "float32", data=a)
    b = T.allocate_const(b64="AP8C/Q==", dtype="int8", extents=[4])
    for i in range(4):
        A[i] = a_1[i]
        B[i] = b[i]
    with T.allocate_const([[1, 2], [3, 4]], "float16", [2, 2], scope="local") as c:
        with T.allocate_const(b64="AADAfwAAgD8=", dtype="float32", extents=[2]) as d:
            C[1, 0] = c[0, 1] + T.Cast("float16", d[1])
    C[0, 0] = T.float16(0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int8"), C: T.Buffer((2, 2), "float16")):
        a = T.allocate_const([0.0, 0.1, 1e30, float("-inf")], "float32", [4])
        a_1 = T.decl_buffer((4,), "float32", data=a.data)
        b = T.allocate_const([0, -1, 2, -3], "int8", [4])
        for i in range(4):
            A[i] = a_1[i]
            B[i] = b[i]
        with T.allocate_const([1.0, 2.0, 3.0, 4.0], "float16", [2, 2], scope="local") as c:
            d = T.allocate_const(b64="AADAfwAAgD8=", dtype="float32", extents=[2])
            C[1, 0] = c[0, 1] + T.Cast("float16", d[1])
        C[0, 0] = T.float16(0.0)
