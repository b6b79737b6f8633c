# run: verify
# Two threads, one cell, and no barrier between them: both are named.


@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        S = T.decl_buffer((16,), "float32", scope="shared")
        for t in T.thread_binding(16, thread="threadIdx.x"):
            S[t] = A[b * 16 + t]
            T.tvm_storage_sync("shared")
            B[b * 16 + t] = S[15 - t]
            #^^^^^^^^^^^^^^^^^^^^^^^^ error: the iterations t=7 and t=8 of a loop run on threads at the same time, and both access `S[7]`, which one of them writes
            # note: with b = 0, t = 8
            S[t] = T.float32(0)

# ---- other
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i // 16 * 16 + 15 - i % 16]
