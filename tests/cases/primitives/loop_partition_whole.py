# run: opt
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for i in range(16):
    #^^^^^^^^^^^^^^^^^ error: `loop_partition`: the loop `i` is not taken apart
    # note: no condition changes at one place of it
    # note: trace.py:3 asked for it: sch.loop_partition(l1)
        with T.block("B"):
            v = T.axis.spatial(16, i)
            T.where(i % 2 == 0)
            A[v] = 1.0

# ---- schedule
b0 = sch.get_block(name="B")
l1, = sch.get_loops(b0)
sch.loop_partition(l1)
