# run: opt
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10, 9), "float32"), C: T.Buffer((6, 9), "float32")):
    for i, j, k in T.grid(6, 9, 10):
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: `parallel`: the iterations of the loop `k` run at the same time, and the write `C[i, j]` and the read `C[i, j]` touch one cell in different iterations
    # note: at k=0 and at k=1
    # note: trace.py:3 asked for it: sch.parallel(l3)
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- schedule
b0 = sch.get_block(name="C")
l1, l2, l3 = sch.get_loops(b0)
sch.parallel(l3)
