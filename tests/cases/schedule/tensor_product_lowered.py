# run: compile --target cuda:sm_80 --emit cu --no-cache
# Threads copy 16 bytes at once, lanes load fragments by `ldmatrix`, and wait only where one writes what another reads.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 64), "float16"), B: T.Buffer((64, 16), "float16"), C: T.Buffer((16, 16), "float32")):
        for i, j, k in T.grid(16, 16, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])

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
# static __device__ __forceinline__ void tw_copy_async_16(void *to, const void *from, bool there)
# {
#     asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
#         :
#         : "r"((uint)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
# }
#
# static __device__ __forceinline__ void tw_ldmatrix_x2_trans(void *to, const void *row)
# {
#     uint word[2];
#     asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
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
# static __device__ __forceinline__ void tw_wait_copies()
# {
#     asm volatile("cp.async.wait_all;" : : : "memory");
# }
#
# /* main:
#   tw_k_main_0(argument 0, argument 1, argument 2) over groups 1 x 1 x 1 of threads 32 x 1 x 1, at most 128 registers, 4096 bytes shared  */
#
# __kernel GROUPS_AT_ONCE(32, 1, 1, 16) void tw_k_main_0(__global uchar* restrict A_1_base, ulong A_1_at, __global uchar* restrict B_2_base, ulong B_2_at, __global uchar* restrict C_3_base, ulong C_3_at)
# {
#     __local ushort A_shared_6[1024] __attribute__((aligned(16)));
#     __local ushort B_shared_7[1024] __attribute__((aligned(16)));
#     __global ushort* restrict A_1 = (__global ushort*)(A_1_base + A_1_at);
#     __global ushort* restrict B_2 = (__global ushort*)(B_2_base + B_2_at);
#     __global float* restrict C_3 = (__global float*)(C_3_base + C_3_at);
#      {
#         const int i_0_4 = 0 + (int)get_group_id(1);
#          {
#             const int j_0_5 = 0 + (int)get_group_id(0);
#              {
#                 const int ax0_0_8 = 0 + (int)get_local_id(1);
#                  {
#                     const int ax1_0_9 = 0 + (int)get_local_id(2);
#                      {
#                         const int ax0_3_ax1_2_fused_10 = 0 + (int)get_local_id(0);
#                         float C_local_11[8] __attribute__((aligned(64)));
#                         #pragma unroll
#                         for (int j_2_12 = 0; j_2_12 < 2; ++j_2_12) {
#                             #pragma unroll
#                             for (int i_3_0_13 = 0; i_3_0_13 < 2; ++i_3_0_13) {
#                                 #pragma unroll
#                                 for (int j_3_1_14 = 0; j_3_1_14 < 2; ++j_3_1_14) {
#                                     C_local_11[(((j_2_12 * 4) + (i_3_0_13 * 2)) + j_3_1_14)] = (0.0f);
#                                 }
#                             }
#                         }
#                         #pragma unroll
#                         for (int ax0_ax1_0_fused_0_15 = 0; ax0_ax1_0_fused_0_15 < 2; ++ax0_ax1_0_fused_0_15) {
#                             const int t_16 = (((ax0_ax1_0_fused_0_15 * 256) + ((ax0_3_ax1_2_fused_10 / 4) * 32)) + (((int)((ax0_3_ax1_2_fused_10 % 4) ^ (ax0_3_ax1_2_fused_10 / 8))) * 8));
#                             const int t_17 = (((ax0_ax1_0_fused_0_15 * 512) + ((ax0_3_ax1_2_fused_10 / 4) * 64)) + ((ax0_3_ax1_2_fused_10 % 4) * 8));
#                             tw_copy_async_16(&A_shared_6[t_16], &A_1[t_17], true);
#                         }
#                         #pragma unroll
#                         for (int ax0_ax1_0_fused_0_18 = 0; ax0_ax1_0_fused_0_18 < 2; ++ax0_ax1_0_fused_0_18) {
#                             const int t_19 = (((ax0_ax1_0_fused_0_18 * 256) + ((ax0_3_ax1_2_fused_10 / 2) * 16)) + (((int)((ax0_3_ax1_2_fused_10 % 2) ^ ((ax0_3_ax1_2_fused_10 / 8) % 2))) * 8));
#                             const int t_20 = ((ax0_ax1_0_fused_0_18 * 256) + (ax0_3_ax1_2_fused_10 * 8));
#                             tw_copy_async_16(&B_shared_7[t_19], &B_2[t_20], true);
#                         }
#                         tw_wait_copies();
#                         barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#                         #pragma unroll 1
#                         for (int k_0_21 = 0; k_0_21 < 2; ++k_0_21) {
#                             if ((k_0_21 < 1)) {
#                                 #pragma unroll
#                                 for (int ax0_ax1_0_fused_0_22 = 0; ax0_ax1_0_fused_0_22 < 2; ++ax0_ax1_0_fused_0_22) {
#                                     const int t_23 = (((((k_0_21 * 512) + (ax0_ax1_0_fused_0_22 * 256)) + ((ax0_3_ax1_2_fused_10 / 4) * 32)) + (((int)((ax0_3_ax1_2_fused_10 % 4) ^ (ax0_3_ax1_2_fused_10 / 8))) * 8)) + 512);
#                                     const int t_24 = (((((ax0_ax1_0_fused_0_22 * 512) + ((ax0_3_ax1_2_fused_10 / 4) * 64)) + (k_0_21 * 32)) + ((ax0_3_ax1_2_fused_10 % 4) * 8)) + 32);
#                                     tw_copy_async_16(&A_shared_6[t_23], &A_1[t_24], true);
#                                 }
#                                 #pragma unroll
#                                 for (int ax0_ax1_0_fused_0_25 = 0; ax0_ax1_0_fused_0_25 < 2; ++ax0_ax1_0_fused_0_25) {
#                                     const int t_26 = (((((k_0_21 * 512) + (ax0_ax1_0_fused_0_25 * 256)) + ((ax0_3_ax1_2_fused_10 / 2) * 16)) + (((int)((ax0_3_ax1_2_fused_10 % 2) ^ ((ax0_3_ax1_2_fused_10 / 8) % 2))) * 8)) + 512);
#                                     const int t_27 = ((((k_0_21 * 512) + (ax0_ax1_0_fused_0_25 * 256)) + (ax0_3_ax1_2_fused_10 * 8)) + 512);
#                                     tw_copy_async_16(&B_shared_7[t_26], &B_2[t_27], true);
#                                 }
#                             }
#                             #pragma unroll
#                             for (int k_1_28 = 0; k_1_28 < 2; ++k_1_28) {
#                                 ushort A_shared_local_29[8] __attribute__((aligned(64)));
#                                 #pragma unroll
#                                 for (int register_30 = 0; register_30 < 8; ++register_30) {
#                                     A_shared_local_29[register_30] = 0;
#                                 }
#                                 tw_ldmatrix_x4(&A_shared_local_29[0], &A_shared_6[((((k_0_21 * 512) + (((ax0_3_ax1_2_fused_10 / 8) % 2) * 256)) + ((ax0_3_ax1_2_fused_10 % 8) * 32)) + (((int)(((k_1_28 * 2) + (ax0_3_ax1_2_fused_10 / 16)) ^ ((ax0_3_ax1_2_fused_10 % 8) / 2))) * 8))]);
#                                 ushort B_shared_local_31[8] __attribute__((aligned(64)));
#                                 #pragma unroll
#                                 for (int ax1_1_32 = 0; ax1_1_32 < 2; ++ax1_1_32) {
#                                     #pragma unroll
#                                     for (int register_33 = 0; register_33 < 4; ++register_33) {
#                                         B_shared_local_31[((ax1_1_32 * 4) + register_33)] = 0;
#                                     }
#                                     tw_ldmatrix_x2_trans(&B_shared_local_31[(ax1_1_32 * 4)], &B_shared_7[(((((k_0_21 * 512) + (k_1_28 * 256)) + (((ax0_3_ax1_2_fused_10 / 8) % 2) * 128)) + ((ax0_3_ax1_2_fused_10 % 8) * 16)) + (((int)(ax1_1_32 ^ ((ax0_3_ax1_2_fused_10 % 8) / 4))) * 8))]);
#                                 }
#                                 #pragma unroll
#                                 for (int j_2_34 = 0; j_2_34 < 2; ++j_2_34) {
#                                     tw_mma_m16n8k16_f16(&A_shared_local_29[0], &B_shared_local_31[(j_2_34 * 4)], &C_local_11[(j_2_34 * 4)]);
#                                 }
#                             }
#                             tw_wait_copies();
#                             barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#                         }
#                         tw_wait_copies();
#                         barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#                         #pragma unroll
#                         for (int ax1_1_35 = 0; ax1_1_35 < 2; ++ax1_1_35) {
#                             #pragma unroll
#                             for (int ax0_2_36 = 0; ax0_2_36 < 2; ++ax0_2_36) {
#                                 #pragma unroll
#                                 for (int ax1_3_37 = 0; ax1_3_37 < 2; ++ax1_3_37) {
#                                     C_3[(((((ax0_2_36 * 128) + ((ax0_3_ax1_2_fused_10 / 4) * 16)) + (ax1_1_35 * 8)) + ((ax0_3_ax1_2_fused_10 % 4) * 2)) + ax1_3_37)] = C_local_11[(((ax1_1_35 * 4) + (ax0_2_36 * 2)) + ax1_3_37)];
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
