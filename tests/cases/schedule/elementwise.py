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
        for i_j_fused in range(351):
            with T.block("B"):
                vi = T.axis.spatial(13, i_j_fused // 27)
                vj = T.axis.spatial(27, i_j_fused % 27)
                B[vi, vj] = T.max(A[vi, vj], T.float32(0.0))
