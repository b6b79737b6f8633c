# run: opt
# A sum over nothing has no initialisation either.


@T.prim_func
def rows(a: T.handle, C: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    for i, k in T.grid(3, n):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `decompose_reduction`: the loop `k` may run for no iteration, or depends on one over the reduction
        # note: trace.py:3 asked for it: sch.decompose_reduction(block, i)
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

# ---- schedule
block = sch.get_block("C")
i, k = sch.get_loops(block)
sch.decompose_reduction(block, i)
