# run: opt --pass hoist_expression --explain
# Nothing is evaluated that was not before, where it might fault; what the loop changes is not known
# before it; a sequence would be repeated.
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "int32"), n: T.int32, m: T.int32):
    for i in range(m):
    #^^^^^^^^^^^^^^^^ remark: `A[n] > 0` stays inside of the loop `i`
    # note: it loads, and the first iteration may not get to it
        if A[n] > 0:
            B[0, i] = 1
    for i in range(8):
        if A[n] > 0:
            B[1, i] = 1
    for i in range(8):
    #^^^^^^^^^^^^^^^^ remark: `8 // n > 2` stays inside of the loop `i`
    # note: it divides by `n`, which may be zero where it is not evaluated
        if i < n and 8 // n > 2:
            B[2, i] = 1
    for i in range(8):
    #^^^^^^^^^^^^^^^^ remark: `B[3, 0] > 0` stays inside of the loop `i`
    # note: the loop writes to `B`
        if B[3, 0] > 0:
            B[3, i] = 0
    for i in range(8):
    #^^^^^^^^^^^^^^^^ remark: `n > 0` stays inside of the loop `i`
    # note: the statements around it would have to be repeated
        B[4, i] = 1
        if n > 0:
            B[5, i] = 1
# sizes: n=1, m=4

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "int32"), n: T.int32, m: T.int32):
        for i in range(m):
            if A[n] > 0:
                B[0, i] = 1
        if A[n] > 0:
            for i in range(8):
                B[1, i] = 1
        for i in range(8):
            if i < n and 8 // n > 2:
                B[2, i] = 1
        for i in range(8):
            if B[3, 0] > 0:
                B[3, i] = 0
        for i in range(8):
            B[4, i] = 1
            if n > 0:
                B[5, i] = 1
