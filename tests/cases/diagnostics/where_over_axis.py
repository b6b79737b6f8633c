# run: opt
# A predicate stands around the block, where only the loops have values.
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
        #^^^^^^^^^^^^^^^^ error: function `f`: `vi < 7` stands around block `A`, and `vi` is known only inside of it
        # note: in block `A`
            vi = T.axis.spatial(8, i)
            T.where(vi < 7)
            A[vi] = 0.0
