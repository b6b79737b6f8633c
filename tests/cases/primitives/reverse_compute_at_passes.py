# run: opt
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for m in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, m)
            B[vi] = A[vi]
    for i in range(8):
    #^^^^^^^^^^^^^^^^ here: this stands between the loop and the block
        with T.block("C0"):
            vi = T.axis.spatial(8, i)
            C[vi] = 1.0
    for j in range(8):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `reverse_compute_at`: the write `C[m]` and the write `C[i]` may touch one cell in iterations whose order would change
        # note: at m=0
        # note: trace.py:1 asked for it: sch.reverse_compute_at("C", "m")
            vj = T.axis.spatial(8, j)
            C[vj] = B[vj]

# ---- schedule
sch.reverse_compute_at("C", "m")
