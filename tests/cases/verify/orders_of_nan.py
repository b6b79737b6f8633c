# run: verify
# Of floats, what is not less need not be greater or equal.


@T.prim_func
def f(X: T.Buffer((2,), "float32"), Y: T.Buffer((1,), "float32")):
    Y[0] = T.if_then_else(X[0] < X[1], T.float32(1), T.float32(2))

# ---- other
@T.prim_func
def f(X: T.Buffer((2,), "float32"), Y: T.Buffer((1,), "float32")):
    Y[0] = T.if_then_else(X[1] <= X[0], T.float32(2), T.float32(1))

# ---- expected
# exit: 1
# `f` differs in `Y`[0]
#   first:  (1.0 if (X[0] < X[1]) else 2.0)
#   second: (2.0 if (X[1] <= X[0]) else 1.0)
#   with X[0] = 3.0, X[1] = NaN: 2.0 and 1.0
