# run: opt --pass simplify
@T.prim_func
def f(A: T.Buffer((8,), "int32")):
    for i in range(8):
        if i > 5:
            T.assume(i < 6)
            #^^^^^^^^^^^^^^ error: function `f`: the assumption `i < 6` is false here
        A[i] = i
