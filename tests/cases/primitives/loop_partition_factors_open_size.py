# run: opt
# A part has iterations only where the size is known to be large enough.
@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(n):
    #^^^^^^^^^^^^^^^^ error: `loop_partition`: the loop `i` is not taken apart
    # note: the extents take 4 iterations, more than the n of the loop at n=0
    # note: trace.py:3 asked for it: sch.loop_partition(l1, factors=[4, None])
        with T.block("B"):
            v = T.axis.spatial(16, i)
            A[v] = 1.0

# ---- schedule
b0 = sch.get_block(name="B")
l1, = sch.get_loops(b0)
sch.loop_partition(l1, factors=[4, None])
