# run: opt --pass simplify
@T.prim_func
def f(A: T.Buffer((8,), "int32")):
    for i in range(8):
        A[i] = i
    for i in range(4):
        T.assume(A[i + 1] == 0)
        #^^^^^^^^^^^^^^^^^^^^^^ error: function `f`: the assumption `A[i + 1] == 0` is false here
