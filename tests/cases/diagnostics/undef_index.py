# run: opt
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[T.undef(dtype="int32")] = 1.0
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: function `f`: index `T.undef(dtype="int32")` contains T.undef()
    # note: in `A[T.undef(dtype="int32")] = T.float32(1.0)`
