# run: run --dim n=4
@T.prim_func
def iota(b: T.handle):
    n = T.int32()
    B = T.match_buffer(b, (n,), "int32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = vi * vi

# ---- expected
# B: int32 [4] 0 1 4 9
