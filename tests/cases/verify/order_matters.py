# run: verify
# Two partial sums round differently.


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
# exit: 1
# `f` differs in `B`[0]
#   first:  (A[7] + (A[6] + (A[5] + (A[4] + (A[3] + (A[2] + (A[0] + A[1])))))))
#   second: ((A[6] + (A[4] + (A[0] + A[2]))) + (A[7] + (A[5] + (A[1] + A[3]))))
#   with A[0] = 1453.3464, A[1] = 3153.5059, A[2] = 1817.0497, A[3] = 3843.2456, A[4] = -4340.398, A[5] = -4185.8535, A[6] = -41.200485, A[7] = -3768.9111: -2069.2146 and -2069.2156
