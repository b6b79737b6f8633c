# run: opt --pass loop_partition --pass-config unroll_loop_with_partition_hint_no_interval=1 --explain
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.serial(8, annotations={"pragma_loop_partition_hint": 1}):
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the loop `i` is not taken apart
    # note: no condition changes at one place of it
        if i % 2 == 0:
            B[i] = A[i]
        else:
            B[i] = 0
    for i in range(8):
    #^^^^^^^^^^^^^^^^ remark: the loop `i` is not taken apart
    # note: its bounds are constant, and it has no hint
        if T.likely(i < 6):
            A[i] = 0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in T.unroll(8):
            if i % 2 == 0:
                B[i] = A[i]
            else:
                B[i] = 0
        for i in range(8):
            if i < 6:
                A[i] = 0
