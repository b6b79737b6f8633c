# run: opt


@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v] + 1.0

# ---- schedule
loops = sch.get_loops(sch.get_block("B"))
sch.parallel(loops[1])
             #^^^^^^^ error: there are 1 elements, and no element 1
