# run: opt --pass lower
# A view of a region becomes an offset.


@T.prim_func
def f(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for io, jo in T.grid(3, 4):
        with T.block("tile"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            X = T.match_buffer(A[vio * 2 : vio * 2 + 2, vjo * 2 : vjo * 2 + 2], (2, 2), "float32")
            Y = T.match_buffer(B[vio * 2 : vio * 2 + 2, vjo * 2 : vjo * 2 + 2], (2, 2), "float32")
            for i, j in T.grid(2, 2):
                with T.block("cell"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = X[vi, vj] + 1.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        A_1 = T.decl_buffer((48,), "float32", data=A.data)
        B_1 = T.decl_buffer((48,), "float32", data=B.data)
        for io, jo, i, j in T.grid(3, 4, 2, 2):
            B_1[(io * 2 + i) * 8 + (jo * 2 + j)] = A_1[(io * 2 + i) * 8 + (jo * 2 + j)] + T.float32(1.0)
