# run: opt --pass lower_blocks
@T.prim_func
def f(A: T.Buffer((4, 4), "float32")):
    for i in range(2):
        with T.block("b"):
        #^^^^^^^^^^^^^^^^ error: function `f`: view `X` has shape (8), but the region of `A` has (2, 4)
        # note: in block `b`
            vi = T.axis.spatial(2, i)
            X = T.match_buffer(A[vi * 2 : vi * 2 + 2, 0:4], (8,), "float32")
            X[0] = 1.0
