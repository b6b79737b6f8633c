# run: opt --pass remove_no_op
# A value that is there already need not be written again, whatever the loops look like.


@T.prim_func
def written(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(16):
        B[i] = A[i] + i
    for io, ii in T.grid(4, 4):
        if ii < 3:
            B[io * 4 + ii] = A[4 * io + ii] + (4 * io + ii)
    for i in range(16):
        if i >= 3:
            C[i] = C[i - 3 + 3]
        else:
            C[i] = 0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def written(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        for i in range(16):
            B[i] = A[i] + i
        for i in range(16):
            if not i >= 3:
                C[i] = 0
