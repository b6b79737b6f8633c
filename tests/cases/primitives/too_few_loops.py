# run: opt


@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v] + 1.0

# ---- schedule
a, b, *rest = sch.get_loops(sch.get_block("B"))
#^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: there are 1 values for at least 2 names
sch.parallel(a)
