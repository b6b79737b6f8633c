# run: verify
# A barrier ends a phase: after it, a thread reads what others wrote before it.


@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i // 16 * 16 + 15 - i % 16]

# ---- other
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        S = T.decl_buffer((16,), "float32", scope="shared")
        for t in T.thread_binding(16, thread="threadIdx.x"):
            S[t] = A[b * 16 + t]
            T.tvm_storage_sync("shared")
            B[b * 16 + t] = S[15 - t]

# ---- expected
