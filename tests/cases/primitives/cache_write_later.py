# run: opt
# `C` reads a cell that the next iteration writes: the buffer still has what it was given there,
# the cache nothing.
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((17,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `cache_write`: the consumer `C` reads more of `B` than the cache is known to hold then
        # note: trace.py:1 asked for it: sch.cache_write("B", 0, "local", consumer_blocks=["C"])
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi + 1]

# ---- schedule
sch.cache_write("B", 0, "local", consumer_blocks=["C"])
