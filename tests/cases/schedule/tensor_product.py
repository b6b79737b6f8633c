# run: opt --pass auto_schedule --pass-config triple=cuda --pass-config cpu=sm_80 --pass-config features=+fma,+mma
# Halves are multiplied by tensor instructions: what is ragged is zero in shared memory, and not stored.
@T.prim_func
def f(A: T.Buffer((17, 18), "float16"), B: T.Buffer((18, 9), "float16"), bias: T.Buffer((9,), "float16"), D: T.Buffer((17, 9), "float16")):
    C = T.alloc_buffer((17, 9), "float32")
    for i, j, k in T.grid(17, 9, 18):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
    for i, j in T.grid(17, 9):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(T.Cast("float16", C[vi, vj]) + bias[vj], T.float16(0))
