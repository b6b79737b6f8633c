# run: opt --pass remove_no_op --explain
# What stays: a store that is overwritten only in part, one that is read in between, one that decides
# a branch, and memory that is seen through two buffers.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
    for i in range(16):
        A[i] = 100
    for i in range(16):
        if i < 12:
            A[i] = 42
    flag = T.alloc_buffer((1,), "int32")
    flag[0] = D[0]
    if flag[0] > 3:
        B[0] = 1
    flag[0] = 0
    view = T.decl_buffer((4, 4), "int32", data=D.data)
    D[0] = 1
    view[0, 0] = 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
        flag = T.alloc_buffer((1,), "int32")
        for i in range(16):
            A[i] = 100
        for i in range(16):
            if i < 12:
                A[i] = 42
        flag[0] = D[0]
        if flag[0] > 3:
            B[0] = 1
        view = T.decl_buffer((4, 4), "int32", data=D.data)
        D[0] = 1
        view[0, 0] = 1
