# run: verify
# Integers are a ring, and wrap; of floats, what rounds alike.


@T.prim_func
def f(A: T.Buffer((4,), "int8"), B: T.Buffer((6,), "int8"), X: T.Buffer((4,), "float32"), Y: T.Buffer((5,), "float32")):
    B[0] = A[0] + A[0]
    B[1] = (A[0] + A[1]) * (A[0] - A[1])
    B[2] = A[0] * T.int8(64) + A[0] * T.int8(-64)
    B[3] = T.int8(3) * (A[2] + A[3]) - A[2]
    B[4] = T.Select(A[0] + T.int8(1) == A[1] + T.int8(1), A[2], A[3])
    B[5] = (A[0] - A[1]) * A[2]
    Y[0] = X[0] + X[0]
    Y[1] = X[0] - X[1]
    Y[2] = X[0] / T.float32(8)
    Y[3] = X[0] - T.float32(3) * X[1]
    Y[4] = T.float32(0) - X[2]

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int8"), B: T.Buffer((6,), "int8"), X: T.Buffer((4,), "float32"), Y: T.Buffer((5,), "float32")):
    B[0] = T.int8(2) * A[0]
    B[1] = A[0] * A[0] - A[1] * A[1]
    B[2] = T.int8(0)
    B[3] = A[3] + A[2] * T.int8(2) + (A[3] + A[3])
    B[4] = T.Select(T.int8(0) == A[1] - A[0], A[2], A[3])
    B[5] = A[2] * A[0] - A[2] * A[1]
    Y[0] = T.float32(2) * X[0]
    Y[1] = X[0] + T.float32(-1) * X[1]
    Y[2] = T.float32(0.125) * X[0]
    Y[3] = X[0] + X[1] * T.float32(-3)
    Y[4] = X[2] * T.float32(-1)

# ---- expected
