# run: opt
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8, 6), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
    for i in range(8):
    #^^^^^^^^^^^^^^^^ error: `compute_at`: 1 is no position for the block in the loop, those from 0 to 0 are
    # note: trace.py:4 asked for it: sch.compute_at(block=b0, loop=l2, index=1)
        for j in range(6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi]
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[vi]

# ---- schedule
b0 = sch.get_block(name="B", func_name="main")
b1 = sch.get_block(name="D", func_name="main")
l2, = sch.get_loops(block=b1)
sch.compute_at(block=b0, loop=l2, index=1)
