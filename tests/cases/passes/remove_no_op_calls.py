# run: opt --pass remove_no_op
# semantics: not compared, because functions in C are called
# A call keeps its effect where its value is not wanted, and may have read what was written before.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    A[0] = 1
    B[0] = T.call_extern("int32", "now")
    A[0] = 2
    B[0] = 3
    if T.call_extern("bool", "ask"):
        B[1] = B[1]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        A[0] = 1
        T.evaluate(T.call_extern("int32", "now"))
        A[0] = 2
        B[0] = 3
        T.evaluate(T.call_extern("bool", "ask"))
