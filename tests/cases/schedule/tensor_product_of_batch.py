# run: opt --pass auto_schedule --pass-config triple=cuda --pass-config cpu=sm_80 --pass-config features=+fma,+mma
# A batch of products whose right factor lies with its columns as rows.
@T.prim_func
def f(A: T.Buffer((2, 32, 32), "bfloat16"), B: T.Buffer((2, 16, 32), "bfloat16"), C: T.Buffer((2, 32, 16), "float32")):
    for n, i, j, k in T.grid(2, 32, 16, 32):
        with T.block("C"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                C[vn, vi, vj] = T.float32(0)
            C[vn, vi, vj] = C[vn, vi, vj] + T.Cast("float32", A[vn, vi, vk]) * T.Cast("float32", B[vn, vj, vk])
