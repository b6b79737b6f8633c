# run: compile --no-schedule --target opencl:generic --emit cl
# Weights: a texel is four input channels.
@T.prim_func
def func(A: T.Buffer((9, 8, 3, 3), "float32"), X: T.Buffer((8, 3, 3), "float32"), C: T.Buffer((9,), "float32")):
    W = T.alloc_buffer((2, 3, 3, 9, 4), "float32", scope="global.texture-weight", axis_separators=[3])
    for i_0_h_w_fused in T.parallel(18):
        for o, i_1 in T.grid(9, 4):
            with T.block("W"):
                vo = T.axis.spatial(9, o)
                vi = T.axis.spatial(8, i_0_h_w_fused // 9 * 4 + i_1)
                vh = T.axis.spatial(3, i_0_h_w_fused // 3 % 3)
                vw = T.axis.spatial(3, i_0_h_w_fused % 3)
                W[vi // 4, vh, vw, vo, vi % 4] = A[vo, vi, vh, vw]
    for o, i, h, w in T.grid(9, 8, 3, 3):
        with T.block("C"):
            vo, vi, vh, vw = T.axis.remap("SRRR", [o, i, h, w])
            with T.init():
                C[vo] = T.float32(0.0)
            C[vo] = C[vo] + W[vi // 4, vh, vw, vo, vi % 4] * X[vi, vh, vw]

# ---- expected
