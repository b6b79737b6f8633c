# run: opt


@T.prim_func
def func(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("copy"):
            v = T.axis.spatial(16, i)
            if v < 14:
                B[v] = A[v]

# ---- schedule
sch.remove_branching_through_overcompute(block="copy")
