# run: verify
# Half of the threads do not come to the barrier.


@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            B[b * 16 + t] = A[b * 16 + t]
            if t < 8:
            #^^^^^^^ error: function `f`: threads wait for one another where they may not all come to
            # note: what decides it: a condition
            # help: a condition around, or the extent of a loop, depends on the thread or on data
                T.tvm_storage_sync("shared")

# ---- other
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i]
