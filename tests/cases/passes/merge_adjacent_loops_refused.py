# run: opt --pass merge_adjacent_loops --explain
# A read of what a later iteration writes; parallel iterations that meet; other ranges; a statement
# in between that reads what would move.
@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
    for i in range(16):
        A[i] = i
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ remark: the loops over `i` are not merged: the first writes `A[i]` and the second reads `A[i + 1]`
    # note: at i=2 of the first and i=1 of the second
        if 0 < i and i < 15:
            A[i] = A[i - 1] + A[i] + A[i + 1]
    for p in T.parallel(16):
        B[p] = p
    for p in T.parallel(16):
    #^^^^^^^^^^^^^^^^^^^^^^ remark: the loops over `p` are not merged: the first writes `B[p]` and the second reads `B[15 - p]`
    # note: at p=0 of the first and p=15 of the second
        C[p] = B[15 - p]
    for q in range(15):
        D[q + 1] = 0
    for r in range(3):
        D[r] = D[r + 1]
    for q in range(15):
    #^^^^^^^^^^^^^^^^^ remark: the loop over `q` does not move in front of what is before it, which reads `D[r + 1]` where it writes `D[q]`
    # note: at r=0, q=1
        D[q] = D[q + 1] + 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = i
        for i in range(16):
            if 0 < i and i < 15:
                A[i] = A[i - 1] + A[i] + A[i + 1]
        for p in T.parallel(16):
            B[p] = p
        for p in T.parallel(16):
            C[p] = B[15 - p]
        for q in range(15):
            D[q + 1] = 0
        for r in range(3):
            D[r] = D[r + 1]
        for q in range(15):
            D[q] = D[q + 1] + 1
