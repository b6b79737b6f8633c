# run: opt --pass lower
# Before code generation, an index that is not known to stay in int32 is computed in int64.
@T.prim_func
def f(a: T.handle, P: T.Buffer((8,), "int32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer((100, 4), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        A[i, j] = 0.0
    for i, j in T.grid(8, 4):
        B[i, j] = C[T.max(T.min(P[i], 99), 0), j]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, P: T.Buffer((8,), "int32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer((100, 4), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (n, 4), "float32")
        A_1 = T.decl_buffer((n * 4,), "float32", data=A.data)
        B_1 = T.decl_buffer((32,), "float32", data=B.data)
        C_1 = T.decl_buffer((400,), "float32", data=C.data)
        for i, j in T.grid(n, 4):
            A_1[T.Cast("int64", i) * T.int64(4) + T.Cast("int64", j)] = T.float32(0.0)
        for i, j in T.grid(8, 4):
            B_1[i * 4 + j] = C_1[T.Cast("int64", T.max(T.min(P[i], 99), 0)) * T.int64(4) + T.Cast("int64", j)]
