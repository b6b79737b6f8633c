# run: compile --no-schedule --target opencl:generic --emit cl
# Activations: the row is a block of channels and an image row, a texel four channels of a pixel.
@T.prim_func
def func(A: T.Buffer((2, 5, 6, 8), "float32"), C: T.Buffer((2, 5, 6, 8), "float32")):
    B = T.alloc_buffer((2, 2, 5, 6, 4), "float32", scope="global.texture", axis_separators=[3])
    for n_c_0_h_fused in T.parallel(20):
        for w, c_1 in T.grid(6, 4):
            with T.block("B"):
                vn = T.axis.spatial(2, n_c_0_h_fused // 10)
                vh = T.axis.spatial(5, n_c_0_h_fused % 5)
                vw = T.axis.spatial(6, w)
                vc = T.axis.spatial(8, n_c_0_h_fused // 5 % 2 * 4 + c_1)
                B[vn, vc // 4, vh, vw, vc % 4] = A[vn, vh, vw, vc] * T.float32(2.0)
    for n, h, w, c in T.grid(2, 5, 6, 8):
        with T.block("C"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            C[vn, vh, vw, vc] = B[vn, vc // 4, vh, vw, vc % 4] + T.float32(1.0)

# ---- expected
