# run: opt --pass lower
# semantics: not compared, because random indices are out of range
@T.prim_func
def gather(A: T.Buffer((10, 4), "float32"), at: T.Buffer((6,), "int32"), B: T.Buffer((6, 4), "float32")):
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[at[vi], vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def gather(A: T.Buffer((10, 4), "float32"), at: T.Buffer((6,), "int32"), B: T.Buffer((6, 4), "float32")):
        A_1 = T.decl_buffer((40,), "float32", data=A.data)
        B_1 = T.decl_buffer((24,), "float32", data=B.data)
        for i in range(6):
            assert at[i] >= 0 and at[i] < 10, ("`A[{}, {}]` is out of range: axis 0 has extent 10", T.Cast("int64", at[i]), T.int64(0))
        for i, j in T.grid(6, 4):
            B_1[i * 4 + j] = A_1[T.Cast("int64", at[i]) * T.int64(4) + T.Cast("int64", j)]
