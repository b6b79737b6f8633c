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
# #pragma OPENCL FP_CONTRACT OFF
# #define GROUP_SIZE(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
# /* Vectors at any element. Clang reads them at once; its vload16 may take parts. */
# #ifdef __clang__
# #define VLOAD(n, type, space, from) (*(const space tw_##type##n *)(from))
# #define VSTORE(n, type, space, value, to) *(space tw_##type##n *)(to) = (value)
# #else
# #define VLOAD(n, type, space, from) vload##n(0, from)
# #define VSTORE(n, type, space, value, to) vstore##n(value, 0, to)
# #endif
#
# __constant sampler_t tw_border =
#     CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
#
# static float tw_channel(float4 texel, int k)
# {
#     return k == 0 ? texel.x : k == 1 ? texel.y : k == 2 ? texel.z : texel.w;
# }
# /* func:
#   tw_k_func_0(an image of 10 rows of 12 texels, argument 0) over 10 items   tw_k_func_1(argument 1, an image of 10 rows of 12 texels) once  */
#
# __kernel void tw_k_func_0(__write_only image2d_t B_1, __global uchar* restrict A_2_base, ulong A_2_at)
# {
#     __global float* restrict A_2 = (__global float*)(A_2_base + A_2_at);
#     const long items_4 = 10;
#     const int end_5 = 0 + (int)(items_4 * (((long)get_global_id(0) + 1)) / (long)get_global_size(0));
#     for (int n_h_fused_3 = 0 + (int)(items_4 * ((long)get_global_id(0)) / (long)get_global_size(0)); n_h_fused_3 < end_5; ++n_h_fused_3) {
#         for (int w_6 = 0; w_6 < 6; ++w_6) {
#             for (int c_0_7 = 0; c_0_7 < 2; ++c_0_7) {
#                 for (int from_9 = 0; from_9 < 0 + 4; from_9 += 4) {
#                     float texel_10[4];
#                     #pragma unroll
#                     for (int c_1_8 = from_9; c_1_8 < from_9 + 4; ++c_1_8) {
#                         texel_10[c_1_8 - from_9] = (A_2[((((n_h_fused_3 * 48) + (w_6 * 8)) + (c_0_7 * 4)) + c_1_8)] * (2.0f));
#                     }
#                     write_imagef(B_1, (int2)((int)((((w_6 * 8) + (c_0_7 * 4)) + from_9) >> 2), (int)(n_h_fused_3)), (float4)(texel_10[0], texel_10[1], texel_10[2], texel_10[3]));
#                 }
#             }
#         }
#     }
# }
#
# __kernel void tw_k_func_1(__global uchar* restrict C_1_base, ulong C_1_at, __read_only image2d_t B_2)
# {
#     __global float* restrict C_1 = (__global float*)(C_1_base + C_1_at);
#     for (int n_3 = 0; n_3 < 2; ++n_3) {
#         for (int h_4 = 0; h_4 < 5; ++h_4) {
#             for (int w_5 = 0; w_5 < 6; ++w_5) {
#                 for (int c_6 = 0; c_6 < 8; ++c_6) {
#                     C_1[((((n_3 * 240) + (h_4 * 48)) + (w_5 * 8)) + c_6)] = (tw_channel(read_imagef(B_2, tw_border, (int2)((int)((((w_5 * 8) + c_6)) >> 2), (int)(((n_3 * 5) + h_4)))), (int)((((w_5 * 8) + c_6)) & 3)) + (1.0f));
#                 }
#             }
#         }
#     }
# }
#
