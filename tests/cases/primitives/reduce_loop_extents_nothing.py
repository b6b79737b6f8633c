# run: opt
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    with T.block("B"):
    #^^^^^^^^^^^^^^^^ error: `reduce_loop_extents`: there is nothing to change
    # note: trace.py:2 asked for it: sch.reduce_loop_extents(b0)
        for i in range(4):
            A[i] = 1.0

# ---- schedule
b0 = sch.get_block(name="B")
sch.reduce_loop_extents(b0)
