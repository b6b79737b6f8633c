# run: opt
@T.prim_func
def main(A: T.Buffer((8, 6), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for k, i in T.grid(6, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
    for j in range(8):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `reverse_compute_at`: the block `C` would run several times for the same values of its variables
        # note: (k=0, ax0=0) and (k=1, ax0=0) have one image
        # note: trace.py:1 asked for it: sch.reverse_compute_at("C", "k")
            vj = T.axis.spatial(8, j)
            C[vj] = B[vj] + 1.0

# ---- schedule
sch.reverse_compute_at("C", "k")
