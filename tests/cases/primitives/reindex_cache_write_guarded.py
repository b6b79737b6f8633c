# run: opt
# Where the block does not write, the cache holds nothing that could be copied back.
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("B"):
        #^^^^^^^^^^^^^^^^ error: `reindex_cache_write`: the block `B` must write all that is copied from the cache to `B`: `B[0]` is left out
        # note: trace.py:1 asked for it: sch.reindex_cache_write("B", "B", "local", lambda i: [i])
            vi = T.axis.spatial(4, i)
            if vi == 3:
                B[vi] = A[vi]

# ---- schedule
sch.reindex_cache_write("B", "B", "local", lambda i: [i])
