# run: verify
# The same statements with equal expressions need no running, so that the size does not matter.
@T.prim_func
def f(A: T.Buffer(("n", 4096, 4096), "float32"), B: T.Buffer(("n", 4096, 4096), "float32")):
    n = T.int64()
    for b, i, j in T.grid(n, 4096, 4096):
        if i * 4096 + j < 4096 * 4000:
            B[b, i, j] = T.if_then_else(j % 2 == 0, A[b, i, j // 2 * 2], T.float32(0)) + A[b, (i * 64 + j % 64) // 64, j]

# ---- other
@T.prim_func
def f(A: T.Buffer(("m", 4096, 4096), "float32"), B: T.Buffer(("m", 4096, 4096), "float32")):
    m = T.int64()
    for c, x, y in T.grid(m, 4096, 4096):
        if x < 4000:
            B[c, x, y] = T.if_then_else(y // 2 * 2 == y, A[c, x, y], T.float32(0)) + A[c, x, y]

# ---- expected
