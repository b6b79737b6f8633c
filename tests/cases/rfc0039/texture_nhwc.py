# run: compile --no-schedule --target opencl:generic --emit cl
# The same in a texture whose rows hold all channels of their pixels.
@T.prim_func
def func(A: T.Buffer((2, 5, 6, 8), "float32"), C: T.Buffer((2, 5, 6, 8), "float32")):
    B = T.alloc_buffer((2, 5, 6, 8), "float32", scope="global.texture-nhwc", axis_separators=[2])
    for n_h_fused in T.parallel(10):
        for w, c_0, c_1 in T.grid(6, 2, 4):
            with T.block("B"):
                vn = T.axis.spatial(2, n_h_fused // 5)
                vh = T.axis.spatial(5, n_h_fused % 5)
                vw = T.axis.spatial(6, w)
                vc = T.axis.spatial(8, c_0 * 4 + c_1)
                B[vn, vh, vw, vc] = A[vn, vh, vw, vc] * T.float32(2.0)
    for n, h, w, c in T.grid(2, 5, 6, 8):
        with T.block("C"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            C[vn, vh, vw, vc] = B[vn, vh, vw, vc] + T.float32(1.0)

# ---- expected
