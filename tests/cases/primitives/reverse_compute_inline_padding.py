# run: opt
# `P` has more cells than `M`: the block that writes `M` does not run for the padding.
@T.prim_func
def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
    M = T.alloc_buffer((4,), "int32")
    P = T.alloc_buffer((5,), "int32")
    for i in range(4):
        with T.block("M"):
            v = T.axis.spatial(4, i)
            M[v] = A[v] * 2
    for i in range(5):
        with T.block("P"):
        #^^^^^^^^^^^^^^^^ error: `reverse_compute_inline`: the block `M` does not run for every cell of `P` that the block `P` writes
        # note: trace.py:1 asked for it: sch.reverse_compute_inline("P")
            v = T.axis.spatial(5, i)
            P[v] = T.if_then_else(v < 4, M[v], 100)
    for i, k in T.grid(4, 2):
        with T.block("O"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                O[v] = 0
            O[v] = O[v] + P[v + r]

# ---- schedule
sch.reverse_compute_inline("P")
