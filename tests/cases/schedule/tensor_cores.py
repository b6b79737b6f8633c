# run: compile --no-schedule --target cuda:sm_80 --emit cu --no-cache
# A fragment is the registers of 32 lanes: loops that `tensorize` has marked are one call of all lanes.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 48), "float16"), B: T.Buffer((48, 24), "float16"), C: T.Buffer((32, 24), "float32")):
        A_local = T.alloc_buffer((2, 3, 32, 8), "float16", scope="local")
        B_local = T.alloc_buffer((3, 3, 32, 4), "float16", scope="local")
        C_local = T.alloc_buffer((2, 3, 32, 4), "float32", scope="local")
        for i_0 in T.thread_binding(2, thread="blockIdx.y"):
            for j_0 in T.thread_binding(3, thread="blockIdx.x"):
                for i_1_1_j_1_0_fused in T.thread_binding(32, thread="threadIdx.x"):
                    for i_1_0, j_1_1 in T.grid(2, 2):
                        with T.block("C_init"):
                            vi = T.axis.spatial(32, i_0 * 16 + (i_1_0 * 8 + i_1_1_j_1_0_fused // 4))
                            vj = T.axis.spatial(24, j_0 * 8 + (i_1_1_j_1_0_fused % 4 * 2 + j_1_1))
                            C_local[vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] = T.float32(0.0)
                for k_0 in range(3):
                    for ax0_1_ax1_1_fused in T.thread_binding(32, thread="threadIdx.x"):
                        for ax1_0, ax0_0, ax1_2 in T.grid(2, 2, 2):
                            with T.block("A_local"):
                                v0 = T.axis.spatial(32, i_0 * 16 + (ax0_0 * 8 + ax0_1_ax1_1_fused // 4))
                                v1 = T.axis.spatial(48, k_0 * 16 + ((ax1_0 * 4 + ax0_1_ax1_1_fused % 4) * 2 + ax1_2))
                                A_local[v0 // 16, v1 // 16, v0 % 8 * 4 + v1 % 8 // 2, v1 % 16 // 8 * 4 + v0 % 16 // 8 * 2 + v1 % 2] = A[v0, v1]
                    for ax1_ax0_1_fused in T.thread_binding(32, thread="threadIdx.x"):
                        for ax0_0, ax0_2 in T.grid(2, 2):
                            with T.block("B_local"):
                                v0 = T.axis.spatial(48, k_0 * 16 + ((ax0_0 * 4 + ax1_ax0_1_fused % 4) * 2 + ax0_2))
                                v1 = T.axis.spatial(24, j_0 * 8 + ax1_ax0_1_fused // 4)
                                B_local[v0 // 16, v1 // 8, v1 % 8 * 4 + v0 % 8 // 2, v0 % 16 // 8 * 2 + v0 % 2] = B[v0, v1]
                    for i_1 in T.serial(16, annotations={"tensor_instruction": "mma_m16n8k16_f16"}):
                        for j_1, k_1 in T.grid(8, 16):
                            with T.block("C_update"):
                                vi = T.axis.spatial(32, i_0 * 16 + i_1)
                                vj = T.axis.spatial(24, j_0 * 8 + j_1)
                                vk = T.axis.reduce(48, k_0 * 16 + k_1)
                                C_local[vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] = C_local[vi // 16, vj // 8, vi % 8 * 4 + vj % 8 // 2, vi % 16 // 8 * 2 + vj % 2] + T.Cast("float32", A_local[vi // 16, vk // 16, vi % 8 * 4 + vk % 8 // 2, vk % 16 // 8 * 4 + vi % 16 // 8 * 2 + vk % 2]) * T.Cast("float32", B_local[vk // 16, vj // 8, vj % 8 * 4 + vk % 8 // 2, vk % 16 // 8 * 2 + vk % 2])
                for ax0_1_ax1_0_fused in T.thread_binding(32, thread="threadIdx.x"):
                    for ax0_0, ax1_1 in T.grid(2, 2):
                        with T.block("C_local"):
                            v0 = T.axis.spatial(32, i_0 * 16 + (ax0_0 * 8 + ax0_1_ax1_0_fused // 4))
                            v1 = T.axis.spatial(24, j_0 * 8 + (ax0_1_ax1_0_fused % 4 * 2 + ax1_1))
                            T.reads(C_local[v0 // 16, v1 // 8, v0 % 8 * 4 + v1 % 8 // 2, v0 % 16 // 8 * 2 + v1 % 2])
                            T.writes(C[v0, v1])
                            C[v0, v1] = C_local[v0 // 16, v1 // 8, v0 % 8 * 4 + v1 % 8 // 2, v0 % 16 // 8 * 2 + v1 % 2]

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
# static __device__ __forceinline__ void tw_mma_m16n8k16_f16(const ushort *a, const ushort *b, float *c)
# {
#     asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#         : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
#         : "r"(*(const uint *)&a[0]), "r"(*(const uint *)&a[2]), "r"(*(const uint *)&a[4]), "r"(*(const uint *)&a[6]), "r"(*(const uint *)&b[0]), "r"(*(const uint *)&b[2]));
# }
#
# /* main:
#   tw_k_main_0(argument 0, argument 1, argument 2) over groups 3 x 2 x 1 of threads 32 x 1 x 1  */
#
# __kernel GROUP_SIZE(32, 1, 1) void tw_k_main_0(__global uchar* restrict A_1_base, ulong A_1_at, __global uchar* restrict B_2_base, ulong B_2_at, __global uchar* restrict C_3_base, ulong C_3_at)
# {
#     __global ushort* restrict A_1 = (__global ushort*)(A_1_base + A_1_at);
#     __global ushort* restrict B_2 = (__global ushort*)(B_2_base + B_2_at);
#     __global float* restrict C_3 = (__global float*)(C_3_base + C_3_at);
#      {
#         const int i_0_4 = 0 + (int)get_group_id(1);
#          {
#             const int j_0_5 = 0 + (int)get_group_id(0);
#              {
#                 const int ax0_1_ax1_0_fused_6 = 0 + (int)get_local_id(0);
#                 float C_local_7[4] __attribute__((aligned(64)));
#                 for (int i_1_0_8 = 0; i_1_0_8 < 2; ++i_1_0_8) {
#                     for (int j_1_1_9 = 0; j_1_1_9 < 2; ++j_1_1_9) {
#                         C_local_7[((i_1_0_8 * 2) + j_1_1_9)] = (0.0f);
#                     }
#                 }
#                 for (int k_0_10 = 0; k_0_10 < 3; ++k_0_10) {
#                     ushort A_local_11[8] __attribute__((aligned(64)));
#                     for (int ax1_0_12 = 0; ax1_0_12 < 2; ++ax1_0_12) {
#                         for (int ax0_0_13 = 0; ax0_0_13 < 2; ++ax0_0_13) {
#                             for (int ax1_2_14 = 0; ax1_2_14 < 2; ++ax1_2_14) {
#                                 A_local_11[(((ax1_0_12 * 4) + (ax0_0_13 * 2)) + ax1_2_14)] = A_1[(((((((i_0_4 * 768) + (ax0_0_13 * 384)) + ((ax0_1_ax1_0_fused_6 / 4) * 48)) + (k_0_10 * 16)) + (ax1_0_12 * 8)) + ((ax0_1_ax1_0_fused_6 % 4) * 2)) + ax1_2_14)];
#                             }
#                         }
#                     }
#                     ushort B_local_15[4] __attribute__((aligned(64)));
#                     for (int ax0_0_16 = 0; ax0_0_16 < 2; ++ax0_0_16) {
#                         for (int ax0_2_17 = 0; ax0_2_17 < 2; ++ax0_2_17) {
#                             B_local_15[((ax0_0_16 * 2) + ax0_2_17)] = B_2[((((((k_0_10 * 384) + (ax0_0_16 * 192)) + ((ax0_1_ax1_0_fused_6 % 4) * 48)) + (ax0_2_17 * 24)) + (j_0_5 * 8)) + (ax0_1_ax1_0_fused_6 / 4))];
#                         }
#                     }
#                     tw_mma_m16n8k16_f16(&A_local_11[0], &B_local_15[0], &C_local_7[0]);
#                 }
#                 for (int ax0_0_18 = 0; ax0_0_18 < 2; ++ax0_0_18) {
#                     for (int ax1_1_19 = 0; ax1_1_19 < 2; ++ax1_1_19) {
#                         C_3[((((((i_0_4 * 384) + (ax0_0_18 * 192)) + ((ax0_1_ax1_0_fused_6 / 4) * 24)) + (j_0_5 * 8)) + ((ax0_1_ax1_0_fused_6 % 4) * 2)) + ax1_1_19)] = C_local_7[((ax0_0_18 * 2) + ax1_1_19)];
#                     }
#                 }
#             }
#         }
#     }
# }
#
