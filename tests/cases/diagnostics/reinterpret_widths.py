# run: opt
# Types of different widths have no bits in common.
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int64")):
    for i in range(4):
        B[i] = T.reinterpret("int64", A[i])
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: function `f`: `T.reinterpret("int64", A[i])` takes the bits of a float32 for those of a int64
        # note: in `B[i] = T.reinterpret("int64", A[i])`
