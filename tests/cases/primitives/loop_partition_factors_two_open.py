# run: opt
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ error: `loop_partition`: the loop `i` is not taken apart
    # note: 2 extents are open, at most one may be
    # note: trace.py:3 asked for it: sch.loop_partition(l1, factors=[None, 3, None])
        with T.block("B"):
            v = T.axis.spatial(16, i)
            A[v] = 1.0

# ---- schedule
b0 = sch.get_block(name="B")
l1, = sch.get_loops(b0)
sch.loop_partition(l1, factors=[None, 3, None])
