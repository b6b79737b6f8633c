# run: opt --pass lower_blocks,flatten_buffer
@T.prim_func
def f(A: T.Buffer((4, 3, 5), "float32"), B: T.Buffer((5, 12), "float32")):
    for i, j, k in T.grid(4, 3, 5):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vk, vi * 3 + vj] = A[vi, vj, vk]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 3, 5), "float32"), B: T.Buffer((5, 12), "float32")):
        A_1 = T.decl_buffer((60,), "float32", data=A.data)
        B_1 = T.decl_buffer((60,), "float32", data=B.data)
        for i, j, k in T.grid(4, 3, 5):
            B_1[k * 12 + (i * 3 + j)] = A_1[i * 15 + j * 5 + k]
