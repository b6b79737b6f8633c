# run: opt
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((7,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for j in range(7):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `reverse_compute_at`: the read `B[i + 1]` and the write `B[i]` may touch one cell in iterations whose order would change
        # note: at i=0 and at i=1
        # note: trace.py:1 asked for it: sch.reverse_compute_at("C", "i")
            vj = T.axis.spatial(7, j)
            C[vj] = B[vj] + B[vj + 1]

# ---- schedule
sch.reverse_compute_at("C", "i")
