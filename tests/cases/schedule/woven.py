# run: opt --pass auto_schedule,lower_blocks,simplify
# Pixels whose channels become neighbours: rows are woven in vectors of the result.
@T.prim_func
def woven(X: T.Buffer((8, 9, 30), "float32"), Y: T.Buffer((2, 18, 60), "float32")):
    for c, i, j in T.grid(2, 18, 60):
        with T.block("Y"):
            vc, vi, vj = T.axis.remap("SSS", [c, i, j])
            Y[vc, vi, vj] = T.max(X[(vi % 2 * 2 + vj % 2) * 2 + vc, vi // 2, vj // 2], T.float32(0))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def woven(X: T.Buffer((8, 9, 30), "float32"), Y: T.Buffer((2, 18, 60), "float32")):
        for c_i_0_fused, i_1, j_0_j_1_fused_0 in T.grid(18, 2, 3):
            for j_0_j_1_fused_1 in T.vectorized(16):
                Y[c_i_0_fused // 9, c_i_0_fused % 9 * 2 + i_1, j_0_j_1_fused_0 * 16 + j_0_j_1_fused_1] = T.max(X[i_1 * 4 + j_0_j_1_fused_1 % 2 * 2 + c_i_0_fused // 9, c_i_0_fused % 9, j_0_j_1_fused_0 * 8 + j_0_j_1_fused_1 // 2], T.float32(0.0))
        for c_i_0_fused, i_1 in T.grid(18, 2):
            for j_0_j_1_fused_1 in T.vectorized(8):
                Y[c_i_0_fused // 9, c_i_0_fused % 9 * 2 + i_1, j_0_j_1_fused_1 + 48] = T.max(X[i_1 * 4 + j_0_j_1_fused_1 % 2 * 2 + c_i_0_fused // 9, c_i_0_fused % 9, j_0_j_1_fused_1 // 2 + 24], T.float32(0.0))
        for c_i_0_fused, i_1 in T.grid(18, 2):
            for j_0_j_1_fused_1 in T.vectorized(4):
                Y[c_i_0_fused // 9, c_i_0_fused % 9 * 2 + i_1, j_0_j_1_fused_1 + 56] = T.max(X[i_1 * 4 + j_0_j_1_fused_1 % 2 * 2 + c_i_0_fused // 9, c_i_0_fused % 9, j_0_j_1_fused_1 // 2 + 28], T.float32(0.0))
