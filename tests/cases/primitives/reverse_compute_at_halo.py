# run: opt
@T.prim_func
def main(A: T.Buffer((17,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((17,))
    for io, ii in T.grid(4, 5):
        with T.block("B"):
            vi = T.axis.spatial(17, io * 4 + ii)
            B[vi] = A[vi] * 2.0
    for i in range(16):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `reverse_compute_at`: the block `C` would run several times for the same values of its variables
        # note: (io=0, ax0=4) and (io=1, ax0=0) have one image
        # note: trace.py:1 asked for it: sch.reverse_compute_at("C", "io")
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + B[vi + 1]

# ---- schedule
sch.reverse_compute_at("C", "io")
