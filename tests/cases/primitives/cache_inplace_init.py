# run: opt
# Before its initialisation a reduction has nothing that a cache could be filled with.
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,), "float32")
    for i, k in T.grid(4, 8):
        with T.block("B"):
        #^^^^^^^^^^^^^^^^ error: `cache_inplace`: the block `B` initialises `B`, which holds nothing before that could fill a cache
        # note: trace.py:1 asked for it: sch.cache_inplace("B", "B", "local")
        # help: use cache_write
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk] * T.if_then_else(vi > 0, B[vi - 1], 1.0)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]

# ---- schedule
sch.cache_inplace("B", "B", "local")
