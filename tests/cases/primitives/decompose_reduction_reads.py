# run: opt
# The initialisation reads what the loop itself computes: it cannot come before the loop.


@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), D: T.Buffer((4, 4), "int32")):
    B = T.alloc_buffer((4, 4), "int32")
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for i, j, k in T.grid(4, 4, 4):
        with T.block("D"):
        #^^^^^^^^^^^^^^^^ error: `decompose_reduction`: the loop `i` writes `B`, which the initialisation reads, and would read too early
        # note: trace.py:4 asked for it: sch.decompose_reduction(sch.get_block("D"), i)
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = B[vi, vj]
            D[vi, vj] = T.max(D[vi, vj], A[vk, vi])

# ---- schedule
d = sch.get_block("D")
i, j, k = sch.get_loops(d)
sch.compute_at(sch.get_block("B"), j)
sch.decompose_reduction(sch.get_block("D"), i)
