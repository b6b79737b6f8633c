# run: opt
# Partial results of a sum over nothing are none.


@T.prim_func
def rows(a: T.handle, C: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    for i, k in T.grid(3, n):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `rfactor`: the loop `k` may run for no iteration
        # note: trace.py:3 asked for it: sch.rfactor(k, factor_axis=0)
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

# ---- schedule
block = sch.get_block("C")
i, k = sch.get_loops(block)
sch.rfactor(k, factor_axis=0)
