# run: verify
# Other loops and memory in between, at any size: the outputs are the same expressions of the inputs.


@T.prim_func
def f(A: T.Buffer(("n", 16), "float32"), B: T.Buffer(("n", 16), "float32"), S: T.Buffer(("n",), "float32")):
    n = T.int32()
    t = T.alloc_buffer((n, 16), "float32")
    for i, j in T.grid(n, 16):
        t[i, j] = T.exp(A[i, j]) * T.float32(2)
    for i in range(n):
        S[i] = T.float32(0)
        for j in range(16):
            S[i] = S[i] + t[i, j]
    for i, j in T.grid(n, 16):
        B[i, j] = t[i, j] + S[i]

# ---- other
@T.prim_func
def f(A: T.Buffer(("n", 16), "float32"), B: T.Buffer(("n", 16), "float32"), S: T.Buffer(("n",), "float32")):
    n = T.int32()
    for i in range(n):
        t = T.alloc_buffer((4, 4), "float32")
        sum = T.alloc_buffer((1,), "float32")
        for j in range(16):
            t[j // 4, j % 4] = T.exp(A[i, j]) * T.float32(2)
        sum[0] = T.float32(0)
        for jo, ji in T.grid(4, 4):
            sum[0] = sum[0] + t[jo, ji]
        S[i] = sum[0]
        for j in range(16):
            B[i, j] = t[j // 4, j % 4] + sum[0]

# ---- expected
