# run: opt --pass lower_blocks,flatten_buffer
# Axis separators keep physical axes apart.


@T.prim_func
def f(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (2, 3, 4), "float32", axis_separators=[1])
    B = T.match_buffer(b, (2, 3, 4), "float32")
    for i, j, k in T.grid(2, 3, 4):
        B[i, j, k] = A[i, j, k]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((2, 3, 4), "float32", axis_separators=[1]), B: T.Buffer((2, 3, 4), "float32")):
        A_1 = T.decl_buffer((2, 12), "float32", data=A.data, axis_separators=[1])
        B_1 = T.decl_buffer((24,), "float32", data=B.data)
        for i, j, k in T.grid(2, 3, 4):
            B_1[i * 12 + j * 4 + k] = A_1[i, j * 4 + k]
