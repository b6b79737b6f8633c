# run: opt --pass loop_partition --explain
# Loops that stay whole: no condition changes at one place, the bounds depend on memory, threads.


@T.prim_func
def f(A: T.Buffer((64,), "int32"), n: T.int32):
    for i in T.serial(n, annotations={"pragma_loop_partition_hint": 1}):
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the loop `i` is not taken apart
    # note: no condition changes at one place of it
        if T.likely(i % 2 == 0):
            A[i] = 0
    for j in T.serial(A[0] % 8, annotations={"pragma_loop_partition_hint": 1}):
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the loop `j` is not taken apart
    # note: its bounds depend on memory
        if T.likely(j < 4):
            A[j] = 1
    for k in T.thread_binding(16, thread="threadIdx.x", annotations={"pragma_loop_partition_hint": 1}):
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the loop `k` is not taken apart
    # note: it runs over threads
        if T.likely(k < 12):
            A[k] = 2

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), n: T.int32):
        for i in range(n):
            if i % 2 == 0:
                A[i] = 0
        for j in range(A[0] % 8):
            if j < 4:
                A[j] = 1
        for k in T.thread_binding(16, thread="threadIdx.x"):
            if k < 12:
                A[k] = 2
