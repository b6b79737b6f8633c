# run: verify
# Floats do not distribute, and a division by three is no product.


@T.prim_func
def f(X: T.Buffer((2,), "float32"), Y: T.Buffer((2,), "float32")):
    Y[0] = X[0] / T.float32(4)
    Y[1] = X[1] / T.float32(3)

# ---- other
@T.prim_func
def f(X: T.Buffer((2,), "float32"), Y: T.Buffer((2,), "float32")):
    Y[0] = X[0] * T.float32(0.25)
    Y[1] = X[1] * (T.float32(1) / T.float32(3))

# ---- expected
# exit: 1
# `f` differs in `Y`[1]
#   first:  (X[1] / 3.0)
#   second: (X[1] * 0.33333334)
#   with X[1] = -5.0: -1.6666666 and -1.6666667
