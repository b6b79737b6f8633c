# run: opt --pass hoist_expression --explain
# semantics: not compared, because it calls what is outside of the program
# Conditions that stay inside: the loop calls what may change what they read, their value may be
# another one each time, they depend on a thread.


@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "int32"), n: T.int32):
    for i in range(8):
    #^^^^^^^^^^^^^^^^ remark: `A[n] > 0` stays inside of the loop `i`
    # note: the loop calls what may change memory
        if A[n] > 0:
            T.evaluate(T.call_extern("int32", "touch", i))
    for i in range(8):
    #^^^^^^^^^^^^^^^^ remark: `T.call_extern("int32", "draw") > 0` stays inside of the loop `i`
    # note: its value may be another one each time
        if T.call_extern("int32", "draw") > 0:
            B[0, i] = 1
    for k in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(8):
        #^^^^^^^^^^^^^^^^ remark: `k < 5` stays inside of the loop `i`
        # note: it depends on the index of a thread
            if k < 5:
                B[k, i] = 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "int32"), n: T.int32):
        for i in range(8):
            if A[n] > 0:
                T.evaluate(T.call_extern("int32", "touch", i))
        for i in range(8):
            if T.call_extern("int32", "draw") > 0:
                B[0, i] = 1
        for k in T.thread_binding(8, thread="threadIdx.x"):
            for i in range(8):
                if k < 5:
                    B[k, i] = 1
