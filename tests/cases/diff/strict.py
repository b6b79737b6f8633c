# run: diff --strict
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[0] = 0.0

# ---- other
@T.prim_func
def g(A: T.Buffer((4,), "float32")):
    A[0] = 0.0

# ---- expected
# exit: 1
# functions `f` against functions `g`
