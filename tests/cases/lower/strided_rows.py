# run: opt --pass flatten_buffer
# A view with strides spans whole rows where the allocation has them, and else only what it names.
@T.prim_func
def f(A: T.Buffer((67,), "float32"), C: T.Buffer((4, 16), "float32")):
    B = T.decl_buffer((4, 17), "float32")
    V = T.decl_buffer((4, 16), "float32", data=B.data, strides=[17, 1])
    W = T.decl_buffer((4, 16), "float32", data=A.data, strides=[17, 1])
    for i, j in T.grid(4, 16):
        V[i, j] = W[i, j]
    for i, j in T.grid(4, 16):
        C[i, j] = V[i, j]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((67,), "float32"), C: T.Buffer((4, 16), "float32")):
        C_1 = T.decl_buffer((64,), "float32", data=C.data)
        B = T.decl_buffer((68,), "float32")
        V = T.decl_buffer((68,), "float32", data=B.data)
        W = T.decl_buffer((67,), "float32", data=A.data)
        for i, j in T.grid(4, 16):
            V[i * 17 + j] = W[i * 17 + j]
        for i, j in T.grid(4, 16):
            C_1[i * 16 + j] = V[i * 17 + j]
