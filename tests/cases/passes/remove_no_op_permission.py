# run: opt --pass remove_no_op
# Permission to read is no write: what was written before is seen by the caller.


@T.prim_func
def func(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i]
    for i in range(4):
        T.assume(i >= 2 or B[i] == T.undef(dtype="float32"))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]
        for i in range(4):
            T.assume(i >= 2 or B[i] == T.undef(dtype="float32"))
