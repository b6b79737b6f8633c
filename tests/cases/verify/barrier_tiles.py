# run: verify
# A product by tiles in shared memory. The sum of a thread lives over barriers.


@T.prim_func
def f(A: T.Buffer((4, 6), "int32"), B: T.Buffer((6, 4), "int32"), C: T.Buffer((4, 4), "int32")):
    for i, j in T.grid(4, 4):
        C[i, j] = 0
        for k in range(6):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]

# ---- other
@T.prim_func
def f(A: T.Buffer((4, 6), "int32"), B: T.Buffer((6, 4), "int32"), C: T.Buffer((4, 4), "int32")):
    for bi in T.thread_binding(2, thread="blockIdx.x"):
        for bj in T.thread_binding(2, thread="blockIdx.y"):
            X = T.decl_buffer((2, 2), "int32", scope="shared")
            Y = T.decl_buffer((2, 2), "int32", scope="shared")
            for ti in T.thread_binding(2, thread="threadIdx.x"):
                for tj in T.thread_binding(2, thread="threadIdx.y"):
                    acc = T.decl_buffer((1,), "int32", scope="local")
                    acc[0] = 0
                    for ko in range(3):
                        X[ti, tj] = A[bi * 2 + ti, ko * 2 + tj]
                        Y[ti, tj] = B[ko * 2 + ti, bj * 2 + tj]
                        T.tvm_storage_sync("shared")
                        for ki in range(2):
                            acc[0] = acc[0] + X[ti, ki] * Y[ki, tj]
                        T.tvm_storage_sync("shared")
                    C[bi * 2 + ti, bj * 2 + tj] = acc[0]

# ---- expected
