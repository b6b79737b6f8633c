# run: opt
# The copy runs for every instance of the block, also where the condition inside keeps the block
# from reading: there the cell must lie in the buffer, too. `B` is read in range everywhere.
@T.prim_func
def main(A: T.Buffer((7,), "int32"), B: T.Buffer((9,), "int32"), C: T.Buffer((9,), "int32")):
    for i in range(9):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `reindex_cache_read`: the block `C` reads `A[vi]` under a condition, and its copy might read out of range
        # note: trace.py:2 asked for it: sch.reindex_cache_read("C", "A", "local", lambda i: [i])
            vi = T.axis.spatial(9, i)
            C[vi] = T.if_then_else(vi < 7 and A[vi] > 0, B[vi], 7)

# ---- schedule
sch.reindex_cache_read("C", "B", "local", lambda i: [i])
sch.reindex_cache_read("C", "A", "local", lambda i: [i])
