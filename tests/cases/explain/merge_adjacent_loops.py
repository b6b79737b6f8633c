# run: opt --pass merge_adjacent_loops --explain
# Loops that stay apart: a pair of iterations would swap, something in between is in the way or may
# stop the program. Loops over other ranges are no candidates.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
    for i in range(15):
        A[i] = B[i]
    for j in range(15):
    #^^^^^^^^^^^^^^^^^ remark: the loops over `i` and `j` are not merged: the first writes `A[i]` and the second reads `A[j + 1]`
    # note: at i=1 of the first and j=0 of the second
        B[j] = A[j + 1]
    for k in range(16):
        B[k] = B[k] + 1
    A[n % 16] = 0
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ remark: the loop over `i` does not move in front of what is before it, which writes `A[n % 16]` where it writes `A[i]`
    # note: at i=0, n=0
        A[i] = 2
    assert n <= 16, "n is too large"
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ remark: the loop over `i` is not merged with what is before it
    # note: an assertion there may stop the program
        A[i] = A[i] + 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(15):
            A[i] = B[i]
        for j in range(15):
            B[j] = A[j + 1]
        for k in range(16):
            B[k] = B[k] + 1
        A[n % 16] = 0
        for i in range(16):
            A[i] = 2
        assert n <= 16, "n is too large"
        for i in range(16):
            A[i] = A[i] + 1
