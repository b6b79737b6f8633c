# run: opt
# sizes: n=0
# A sum over nothing writes nothing, so that its cache may hold nothing.


@T.prim_func
def rows(a: T.handle, C: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    for i, k in T.grid(3, n):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `cache_write`: the block `C` must write all that is copied from the cache to `C`: `C[0]` is left out
        # note: trace.py:1 asked for it: sch.cache_write(block="C", write_buffer_index=0, storage_scope="local")
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

# ---- schedule
sch.cache_write(block="C", write_buffer_index=0, storage_scope="local")
