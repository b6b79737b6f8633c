# run: opt
# sizes: n=0
# The same for a cache with an order of its own.


@T.prim_func
def rows(a: T.handle, C: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    for i, k in T.grid(3, n):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `reindex_cache_write`: the block `C` may have nothing to reduce, and then its cache holds nothing
        # note: trace.py:1 asked for it: sch.reindex_cache_write(block="C", write_buffer_index=0, storage_scope="local", index_map=lambda vi, vk: (vi,))
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

# ---- schedule
sch.reindex_cache_write(block="C", write_buffer_index=0, storage_scope="local", index_map=lambda vi, vk: (vi,))
