# run: verify --reassociate
# In any order, with differences and with equal summands counted.


@T.prim_func
def f(X: T.Buffer((4,), "float32"), Y: T.Buffer((3,), "float32")):
    Y[0] = X[0] + X[0]
    Y[1] = X[0] - (X[1] - X[2]) + X[3] + X[3]
    Y[2] = X[0] * X[1] / T.float32(4)

# ---- other
@T.prim_func
def f(X: T.Buffer((4,), "float32"), Y: T.Buffer((3,), "float32")):
    Y[0] = T.float32(2) * X[0]
    Y[1] = X[3] + X[2] + (X[3] - X[1]) + X[0]
    Y[2] = X[1] * (T.float32(0.25) * X[0])

# ---- expected
