# run: opt


@T.prim_func
def func(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("copy"):
            v = T.axis.spatial(16, i)
            if v < 14:
            #^^^^^^^^ error: `remove_branching_through_overcompute`: the guard `i < 14` stays: what would be written to `B` is used, and is not known to be what is there
            # note: at i=14: B[14] is seen by the caller
            # note: trace.py:1 asked for it: sch.remove_branching_through_overcompute(block="copy")
                B[v] = A[v]

# ---- schedule
sch.remove_branching_through_overcompute(block="copy")
