# run: opt --pass lower_opaque_block
@T.prim_func
def f(A: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("fill"):
            T.block_attr({"buffer_dim_align": [[0, 0, 8, 0]]})
            A[i, j] = 1.0
# error: function `f`: cannot align the rows of buffer `A`: it is not allocated here
