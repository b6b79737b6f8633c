# run: compile --target cuda:sm_80 --emit cu --no-cache
# A thread computes a cell; those behind the last one do nothing.
@T.prim_func
def f(A: T.Buffer((5, 131), "float32"), B: T.Buffer((131,), "float32"), C: T.Buffer((5, 131), "float32")):
    for i, j in T.grid(5, 131):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.exp(A[vi, vj]) * B[vj]

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
# /* f:
#   tw_k_f_0(argument 2, argument 0, argument 1) over groups 1 x 5 x 1 of threads 256 x 1 x 1  */
#
# __kernel GROUP_SIZE(256, 1, 1) void tw_k_f_0(__global uchar* restrict C_1_base, ulong C_1_at, __global uchar* restrict A_2_base, ulong A_2_at, __global uchar* restrict B_3_base, ulong B_3_at)
# {
#     __global float* restrict C_1 = (__global float*)(C_1_base + C_1_at);
#     __global float* restrict A_2 = (__global float*)(A_2_base + A_2_at);
#     __global float* restrict B_3 = (__global float*)(B_3_base + B_3_at);
#      {
#         const int i_4 = 0 + (int)get_group_id(1);
#          {
#             const int j_0_5 = 0 + (int)get_group_id(0);
#              {
#                 const int j_1_6 = 0 + (int)get_local_id(0);
#                 if ((j_1_6 < 131)) {
#                     C_1[((i_4 * 131) + j_1_6)] = (exp(A_2[((i_4 * 131) + j_1_6)]) * B_3[j_1_6]);
#                 }
#             }
#         }
#     }
# }
#
