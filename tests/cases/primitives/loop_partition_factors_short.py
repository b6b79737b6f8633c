# run: opt
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ error: `loop_partition`: the loop `i` is not taken apart
    # note: the extents take 17 iterations, more than the 16 of the loop
    # note: trace.py:3 asked for it: sch.loop_partition(l1, factors=[5, 12])
        with T.block("B"):
            v = T.axis.spatial(16, i)
            A[v] = 1.0

# ---- schedule
b0 = sch.get_block(name="B")
l1, = sch.get_loops(b0)
sch.loop_partition(l1, factors=[5, 12])
