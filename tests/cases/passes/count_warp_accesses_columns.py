# run: opt --pass count_warp_accesses --explain
# Neighbouring threads take neighbouring rows: segments of their own. What a loop adds is tried by its remainder.
@T.prim_func
def f(A: T.Buffer((64, 40), "float32"), I: T.Buffer((64,), "int32"), B: T.Buffer((40, 64), "float32"), C: T.Buffer((64,), "float16")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for x in T.thread_binding(32, thread="threadIdx.x"):
            for k in range(40):
                B[k, b * 32 + x] = A[b * 32 + x, k]
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the read of `A[b * 1280 + x * 40 + k]` touches 32 segments of 128 bytes, where 1 would do
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the write of `B[k * 64 + b * 32 + x]` touches 1 segment of 128 bytes
            C[b * 32 + x] = T.Cast("float16", A[(b * 32 + x + 5) % 64, 3]) * T.Cast("float16", A[I[b * 32 + x], 0])
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the read of `A[(b * 32 + x + 5) % 64 * 40 + 3]` touches 32 segments of 128 bytes, where 1 would do
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the read of `A[T.Cast("int64", I[b * 32 + x]) * T.int64(40)]` is not counted: data decide its index
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the read of `I[b * 32 + x]` touches 1 segment of 128 bytes
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the write of `C[b * 32 + x]` touches 1 segment of 128 bytes

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func(names={"I_": "I"})
    def f(A: T.Buffer((64, 40), "float32"), I_: T.Buffer((64,), "int32"), B: T.Buffer((40, 64), "float32"), C: T.Buffer((64,), "float16")):
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(32, thread="threadIdx.x"):
                for k in range(40):
                    B[k, b * 32 + x] = A[b * 32 + x, k]
                C[b * 32 + x] = T.Cast("float16", A[(b * 32 + x + 5) % 64, 3]) * T.Cast("float16", A[I_[b * 32 + x], 0])
