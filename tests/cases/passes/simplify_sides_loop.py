# run: opt --pass simplify
# Both sides of the branch are one. Its inner loop writes A at every i, where it was seen at i = 0:
# nothing is known of A[2].
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        if i < 1:
            A[i] = 0
            for j in range(2):
                A[i] = B[j]
        else:
            A[i] = 0
            for j in range(2):
                A[i] = B[j]
    if A[2] == 0:
        B[0] = 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = 0
            for j in range(2):
                A[i] = B[j]
        if A[2] == 0:
            B[0] = 1
