# run: verify --reassociate
# Two partial sums; without --reassociate this is a difference.


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for k in range(8):
        with T.block("B"):
            vk = T.axis.reduce(8, k)
            with T.init():
                B[0] = 0.0
            B[0] = B[0] + A[vk]

# ---- other
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    R = T.alloc_buffer((2,))
    for r in range(2):
        R[r] = 0.0
        for k in range(4):
            R[r] = R[r] + A[k * 2 + r]
    B[0] = R[0] + R[1]

# ---- expected
