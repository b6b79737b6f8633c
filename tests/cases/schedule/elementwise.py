# run: opt --pass schedule_stages
@T.prim_func
def relu(A: T.Buffer((13, 27), "float32"), B: T.Buffer((13, 27), "float32")):
    for i, j in T.grid(13, 27):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.max(A[vi, vj], 0.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def relu(A: T.Buffer((13, 27), "float32"), B: T.Buffer((13, 27), "float32")):
        A_1 = T.decl_buffer((351,), "float32", data=A.data)
        B_1 = T.decl_buffer((351,), "float32", data=B.data)
        for vi_vj in range(351):
            B_1[vi_vj] = T.max(A_1[vi_vj], T.float32(0.0))
