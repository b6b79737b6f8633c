# run: opt --pass use_assume
# What cannot hold is an error at its place.
@T.prim_func
def f(A: T.Buffer((16,), "int32")):
    for i in T.serial(16):
        T.assume(i < 0)
        #^^^^^^^^^^^^^^ error: function `f`: the assumption `i < 0` is false here
        A[i] = 0
