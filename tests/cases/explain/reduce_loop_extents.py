# run: opt --pass reduce_loop_extents --explain
# Ranges that stay: what a guard asks depends on memory or is not affine. A guard that leaves nothing
# to gain, and what runs without a guard, is no refusal.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ remark: the range of the loop `i` stays as it is
    # note: `B[i] > 0` depends on memory
        if B[i] > 0:
            A[i] = 1
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ remark: the range of the loop `i` stays as it is
    # note: `x < m` depends on `n * i`, which is not affine
        x: T.int32 = i * n
        if x < m:
            A[i] = 2
    for i in range(16):
        if B[i] > 0:
            A[i] = 4
        B[i] = 0
    for i in range(16):
        if i % 16 >= 0:
            A[i] = 5

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
        for i in range(16):
            if B[i] > 0:
                A[i] = 1
        for i in range(16):
            x: T.int32 = i * n
            if x < m:
                A[i] = 2
        for i in range(16):
            if B[i] > 0:
                A[i] = 4
            B[i] = 0
        for i in range(16):
            if i % 16 >= 0:
                A[i] = 5
