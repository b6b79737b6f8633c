# run: opt
@T.prim_func
def main(A: T.Buffer((17,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((17,))
    for i in range(17):
        with T.block("B"):
            vi = T.axis.spatial(17, i)
            B[vi] = A[vi] * 2.0
    for io in T.parallel(4):
    #^^^^^^^^^^^^^^^^^^^^^^ error: `compute_at`: the iterations of the loop `io` run at the same time, and might compute the same cells of `B`
    # note: io=0 and io=1 do
    # note: trace.py:1 asked for it: sch.compute_at("B", "io")
    # help: compute the block there first, and let the loop run so afterwards
        for ii in range(4):
            with T.block("C"):
                vi = T.axis.spatial(16, io * 4 + ii)
                C[vi] = B[vi] + B[vi + 1]

# ---- schedule
sch.compute_at("B", "io")
