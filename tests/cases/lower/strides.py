# run: opt --pass lower
# Strides and offsets of a view become part of the index.


@T.prim_func
def f(A: T.Buffer((24,), "float32"), B: T.Buffer((3, 4), "float32")):
    V = T.decl_buffer((3, 4), "float32", data=A.data, strides=[8, 1], elem_offset=4)
    for i, j in T.grid(3, 4):
        B[i, j] = V[i, j]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((24,), "float32"), B: T.Buffer((3, 4), "float32")):
        B_1 = T.decl_buffer((12,), "float32", data=B.data)
        V = T.decl_buffer((24,), "float32", data=A.data)
        for i, j in T.grid(3, 4):
            B_1[i * 4 + j] = V[4 + i * 8 + j]
