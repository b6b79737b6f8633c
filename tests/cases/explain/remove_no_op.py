# run: opt --pass remove_no_op --explain
# A store stays where some of its cells are read, with an iteration that shows it.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((4,), "int32")):
    T_1 = T.alloc_buffer((16,), "int32")
    for i in range(16):
        T_1[i] = A[i]
    for i in range(4):
        B[i] = T_1[3 * i]
    for i in range(16):
        A[i] = 1
        #^^^^^^^ remark: the store to `A` stays: some iterations need it
        # note: at i=12: A[12] is seen by the caller
    for i in range(12):
        A[i] = 2

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((4,), "int32")):
        T_1 = T.alloc_buffer((16,), "int32")
        for i in range(16):
            T_1[i] = A[i]
        for i in range(4):
            B[i] = T_1[3 * i]
        for i in range(16):
            A[i] = 1
        for i in range(12):
            A[i] = 2
