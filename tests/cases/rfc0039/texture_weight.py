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
#   tw_k_func_0(an image of 18 rows of 9 texels, argument 0) over 18 items   tw_k_func_1(argument 2, an image of 18 rows of 9 texels, argument 1) once  */
#
# __kernel void tw_k_func_0(__write_only image2d_t W_1, __global uchar* restrict A_2_base, ulong A_2_at)
# {
#     __global float* restrict A_2 = (__global float*)(A_2_base + A_2_at);
#     const long items_4 = 18;
#     const int end_5 = 0 + (int)(items_4 * (((long)get_global_id(0) + 1)) / (long)get_global_size(0));
#     for (int i_0_h_w_fused_3 = 0 + (int)(items_4 * ((long)get_global_id(0)) / (long)get_global_size(0)); i_0_h_w_fused_3 < end_5; ++i_0_h_w_fused_3) {
#         for (int o_6 = 0; o_6 < 9; ++o_6) {
#             for (int from_8 = 0; from_8 < 0 + 4; from_8 += 4) {
#                 float texel_9[4];
#                 #pragma unroll
#                 for (int i_1_7 = from_8; i_1_7 < from_8 + 4; ++i_1_7) {
#                     texel_9[i_1_7 - from_8] = A_2[(((((o_6 * 72) + ((i_0_h_w_fused_3 / 9) * 36)) + (i_1_7 * 9)) + (((i_0_h_w_fused_3 / 3) % 3) * 3)) + (i_0_h_w_fused_3 % 3))];
#                 }
#                 write_imagef(W_1, (int2)((int)(((o_6 * 4) + from_8) >> 2), (int)(i_0_h_w_fused_3)), (float4)(texel_9[0], texel_9[1], texel_9[2], texel_9[3]));
#             }
#         }
#     }
# }
#
# __kernel void tw_k_func_1(__global uchar* C_1_base, ulong C_1_at, __read_only image2d_t W_2, __global uchar* restrict X_3_base, ulong X_3_at)
# {
#     __global float* C_1 = (__global float*)(C_1_base + C_1_at);
#     __global float* restrict X_3 = (__global float*)(X_3_base + X_3_at);
#     for (int o_4 = 0; o_4 < 9; ++o_4) {
#         for (int i_5 = 0; i_5 < 8; ++i_5) {
#             for (int h_6 = 0; h_6 < 3; ++h_6) {
#                 for (int w_7 = 0; w_7 < 3; ++w_7) {
#                     if ((((i_5 == 0) && (h_6 == 0)) && (w_7 == 0))) {
#                         C_1[o_4] = (0.0f);
#                     }
#                     C_1[o_4] = fma(tw_channel(read_imagef(W_2, tw_border, (int2)((int)((((o_4 * 4) + (i_5 % 4))) >> 2), (int)(((((i_5 / 4) * 9) + (h_6 * 3)) + w_7)))), (int)((((o_4 * 4) + (i_5 % 4))) & 3)), X_3[(((i_5 * 9) + (h_6 * 3)) + w_7)], C_1[o_4]);
#                 }
#             }
#         }
#     }
# }
#
