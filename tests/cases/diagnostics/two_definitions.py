# run: opt
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[0] = 1.0


@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    # error: the function `f` is defined twice
    A[0] = 2.0
