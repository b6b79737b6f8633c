# run: opt
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    while A[0] < 1.0:
    #^^^^ error: `while` loops are not supported
        A[0] = A[0] + 1.0
