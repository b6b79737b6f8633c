# run: compile --target cuda:sm_80 --emit cu --no-cache
# A product that fits one fragment, stored across: loops of one iteration are gone before registers are given to lanes.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((2, 4, 8), "float16"), B: T.Buffer((2, 6, 8), "float16"), M: T.Buffer((6, 4), "bool"), D: T.Buffer((2, 6, 4), "float16")):
        C = T.alloc_buffer((2, 4, 6), "float32")
        for b, i, j, k in T.grid(2, 4, 6, 8):
            with T.block("C"):
                vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
                with T.init():
                    C[vb, vi, vj] = T.float32(0)
                C[vb, vi, vj] = C[vb, vi, vj] + T.Cast("float32", A[vb, vi, vk]) * T.Cast("float32", B[vb, vj, vk])
        for b, j, i in T.grid(2, 6, 4):
            with T.block("D"):
                vb, vj, vi = T.axis.remap("SSS", [b, j, i])
                D[vb, vj, vi] = T.Select(M[vj, vi], T.Cast("float16", C[vb, vi, vj]), T.float16(0))

# ---- expected
# /* The names that kernels have from OpenCL C, in CUDA C++. */
# typedef unsigned char uchar;
# typedef unsigned short ushort;
# typedef unsigned int uint;
# typedef unsigned long ulong;
# #define __kernel extern "C" __global__
# #define __global
# #define __local __shared__
# #define restrict __restrict__
# #ifndef INFINITY
# #define INFINITY __int_as_float(0x7f800000)
# #endif
# #ifndef NAN
# #define NAN __int_as_float(0x7fc00000)
# #endif
# #define GROUP_SIZE(x, y, z) __launch_bounds__((x) * (y) * (z))
# #define GROUPS_AT_ONCE(x, y, z, n) __launch_bounds__((x) * (y) * (z), n)
# #define barrier(fences) __syncthreads()
# #define atomic_cmpxchg(at, old, now) atomicCAS((int *)(at), old, now)
# #define as_int(x) __float_as_int(x)
# #define as_uint(x) __float_as_uint(x)
# #define as_float(x) __int_as_float((int)(x))
# #define as_long(x) __double_as_longlong(x)
# #define as_ulong(x) ((ulong)__double_as_longlong(x))
# #define as_double(x) __longlong_as_double((long)(x))
#
# static __device__ __forceinline__ ulong get_group_id(int k)
# {
#     return k == 0 ? blockIdx.x : k == 1 ? blockIdx.y : blockIdx.z;
# }
#
# static __device__ __forceinline__ ulong get_local_id(int k)
# {
#     return k == 0 ? threadIdx.x : k == 1 ? threadIdx.y : threadIdx.z;
# }
#
# static __device__ __forceinline__ ulong get_global_id(int)
# {
#     return (ulong)blockIdx.x * blockDim.x + threadIdx.x;
# }
#
# static __device__ __forceinline__ ulong get_global_size(int)
# {
#     return (ulong)gridDim.x * blockDim.x;
# }
#
# static __device__ __forceinline__ int popcount(uchar x) { return __popc(x); }
# static __device__ __forceinline__ int popcount(ushort x) { return __popc(x); }
# static __device__ __forceinline__ int popcount(uint x) { return __popc(x); }
# static __device__ __forceinline__ int popcount(ulong x) { return __popcll(x); }
# static __device__ __forceinline__ int popcount(signed char x) { return __popc((uchar)x); }
# static __device__ __forceinline__ int popcount(short x) { return __popc((ushort)x); }
# static __device__ __forceinline__ int popcount(int x) { return __popc((uint)x); }
# static __device__ __forceinline__ int popcount(long x) { return __popcll((ulong)x); }
# static __device__ __forceinline__ int clz(uchar x) { return __clz(x) - 24; }
# static __device__ __forceinline__ int clz(ushort x) { return __clz(x) - 16; }
# static __device__ __forceinline__ int clz(uint x) { return __clz((int)x); }
# static __device__ __forceinline__ int clz(ulong x) { return __clzll((long long)x); }
#
# static __device__ __forceinline__ void tw_ldmatrix_x2(void *to, const void *row)
# {
#     uint word[2];
#     asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
#         : "=r"(word[0]), "=r"(word[1])
#         : "r"((uint)__cvta_generic_to_shared(row)) : "memory");
#     for (int k = 0; k < 2; ++k)
#         ((uint *)to)[k] = word[k];
# }
#
# static __device__ __forceinline__ void tw_ldmatrix_x4(void *to, const void *row)
# {
#     uint word[4];
#     asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
#         : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
#         : "r"((uint)__cvta_generic_to_shared(row)) : "memory");
#     for (int k = 0; k < 4; ++k)
#         ((uint *)to)[k] = word[k];
# }
#
# static __device__ __forceinline__ void tw_mma_m16n8k16_f16(const ushort *a, const ushort *b, float *c)
# {
#     asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#         : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
#         : "r"(*(const uint *)&a[0]), "r"(*(const uint *)&a[2]), "r"(*(const uint *)&a[4]), "r"(*(const uint *)&a[6]), "r"(*(const uint *)&b[0]), "r"(*(const uint *)&b[2]));
# }
#
# static __device__ __forceinline__ ushort tw_put_f16(float x)
# {
#     ushort y;
#     asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
#     return y;
# }
# static __device__ __forceinline__ float tw_round_f16(float x)
# {
#     float y;
#     asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y) : "f"(x));
#     return y;
# }
# /* main:
#   tw_k_main_0(argument 0, argument 1, argument 3, argument 2) over groups 1 x 1 x 2 of threads 32 x 1 x 1, at most 128 registers, 4096 bytes shared  */
#
# __kernel GROUPS_AT_ONCE(32, 1, 1, 16) void tw_k_main_0(__global uchar* restrict A_1_base, ulong A_1_at, __global uchar* restrict B_2_base, ulong B_2_at, __global uchar* restrict D_3_base, ulong D_3_at, __global uchar* restrict M_4_base, ulong M_4_at)
# {
#     __local ushort B_pad_8[512] __attribute__((aligned(16)));
#     __local ushort A_pad_9[512] __attribute__((aligned(16)));
#     __global ushort* restrict A_1 = (__global ushort*)(A_1_base + A_1_at);
#     __global ushort* restrict B_2 = (__global ushort*)(B_2_base + B_2_at);
#     __global ushort* restrict D_3 = (__global ushort*)(D_3_base + D_3_at);
#     __global uchar* restrict M_4 = (__global uchar*)(M_4_base + M_4_at);
#      {
#         const int b_5 = 0 + (int)get_group_id(2);
#          {
#             const int i_0_6 = 0 + (int)get_group_id(1);
#              {
#                 const int j_0_7 = 0 + (int)get_group_id(0);
#                  {
#                     const int ax1_0_10 = 0 + (int)get_local_id(1);
#                      {
#                         const int ax0_0_11 = 0 + (int)get_local_id(2);
#                          {
#                             const int ax1_3_ax0_2_fused_12 = 0 + (int)get_local_id(0);
#                             float C_pad_13[8] __attribute__((aligned(64)));
#                             #pragma unroll
#                             for (int j_2_14 = 0; j_2_14 < 2; ++j_2_14) {
#                                 #pragma unroll
#                                 for (int i_3_0_15 = 0; i_3_0_15 < 2; ++i_3_0_15) {
#                                     #pragma unroll
#                                     for (int j_3_1_16 = 0; j_3_1_16 < 2; ++j_3_1_16) {
#                                         C_pad_13[(((j_2_14 * 4) + (i_3_0_15 * 2)) + j_3_1_16)] = (0.0f);
#                                     }
#                                 }
#                             }
#                             #pragma unroll
#                             for (int ax0_ax1_0_fused_0_17 = 0; ax0_ax1_0_fused_0_17 < 2; ++ax0_ax1_0_fused_0_17) {
#                                 const int t_18 = ((ax0_ax1_0_fused_0_17 * 256) + (ax1_3_ax0_2_fused_12 * 8));
#                                 uint4 v_19 = uint4{};
#                                 if (((((ax0_ax1_0_fused_0_17 * 8) + (ax1_3_ax0_2_fused_12 / 4)) < 4) && ((((ax1_3_ax0_2_fused_12 % 4) * 8) + 0) < 8))) {
#                                     const int t_20 = ((((ax0_ax1_0_fused_0_17 * 64) + (b_5 * 32)) + ((ax1_3_ax0_2_fused_12 / 4) * 8)) + ((ax1_3_ax0_2_fused_12 % 4) * 8));
#                                     v_19 = *(const uint4*)&A_1[t_20];
#                                 }
#                                 *(uint4*)&A_pad_9[t_18] = v_19;
#                             }
#                             #pragma unroll
#                             for (int ax0_ax1_0_fused_0_21 = 0; ax0_ax1_0_fused_0_21 < 2; ++ax0_ax1_0_fused_0_21) {
#                                 const int t_22 = ((ax0_ax1_0_fused_0_21 * 256) + (ax1_3_ax0_2_fused_12 * 8));
#                                 uint4 v_23 = uint4{};
#                                 if (((((ax0_ax1_0_fused_0_21 * 8) + (ax1_3_ax0_2_fused_12 / 4)) < 6) && ((((ax1_3_ax0_2_fused_12 % 4) * 8) + 0) < 8))) {
#                                     const int t_24 = ((((ax0_ax1_0_fused_0_21 * 64) + (b_5 * 48)) + ((ax1_3_ax0_2_fused_12 / 4) * 8)) + ((ax1_3_ax0_2_fused_12 % 4) * 8));
#                                     v_23 = *(const uint4*)&B_2[t_24];
#                                 }
#                                 *(uint4*)&B_pad_8[t_22] = v_23;
#                             }
#                             barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#                             #pragma unroll
#                             for (int k_1_25 = 0; k_1_25 < 2; ++k_1_25) {
#                                 ushort A_pad_local_26[8] __attribute__((aligned(64)));
#                                 #pragma unroll
#                                 for (int register_27 = 0; register_27 < 8; ++register_27) {
#                                     A_pad_local_26[register_27] = 0;
#                                 }
#                                 tw_ldmatrix_x4(&A_pad_local_26[0], &A_pad_9[((((((ax1_3_ax0_2_fused_12 / 8) % 2) * 256) + ((ax1_3_ax0_2_fused_12 % 8) * 32)) + (k_1_25 * 16)) + ((ax1_3_ax0_2_fused_12 / 16) * 8))]);
#                                 ushort B_pad_local_28[8] __attribute__((aligned(64)));
#                                 #pragma unroll
#                                 for (int ax0_1_29 = 0; ax0_1_29 < 2; ++ax0_1_29) {
#                                     #pragma unroll
#                                     for (int register_30 = 0; register_30 < 4; ++register_30) {
#                                         B_pad_local_28[((ax0_1_29 * 4) + register_30)] = 0;
#                                     }
#                                     tw_ldmatrix_x2(&B_pad_local_28[(ax0_1_29 * 4)], &B_pad_8[((((ax0_1_29 * 256) + ((ax1_3_ax0_2_fused_12 % 8) * 32)) + (k_1_25 * 16)) + (((ax1_3_ax0_2_fused_12 / 8) % 2) * 8))]);
#                                 }
#                                 #pragma unroll
#                                 for (int j_2_31 = 0; j_2_31 < 2; ++j_2_31) {
#                                     tw_mma_m16n8k16_f16(&A_pad_local_26[0], &B_pad_local_28[(j_2_31 * 4)], &C_pad_13[(j_2_31 * 4)]);
#                                 }
#                             }
#                             const int ax0_1_32 = 0;
#                             const int ax1_2_33 = 0;
#                             #pragma unroll
#                             for (int ax0_3_34 = 0; ax0_3_34 < 2; ++ax0_3_34) {
#                                 if ((((((ax1_3_ax0_2_fused_12 % 4) * 2) + ax0_3_34) < 6) && ((ax1_3_ax0_2_fused_12 / 4) < 4))) {
#                                     D_3[(((((long)b_5) * 24L) + (((long)(((ax1_3_ax0_2_fused_12 % 4) * 2) + ax0_3_34)) * 4L)) + ((long)(ax1_3_ax0_2_fused_12 / 4)))] = tw_put_f16(((M_4[((((long)(((ax1_3_ax0_2_fused_12 % 4) * 2) + ax0_3_34)) * 4L) + ((long)(ax1_3_ax0_2_fused_12 / 4)))] != 0) ? tw_round_f16(((float)C_pad_13[ax0_3_34])) : (0.0f)));
#                                 }
#                             }
#                         }
#                     }
#                 }
#             }
#         }
#     }
# }
#
