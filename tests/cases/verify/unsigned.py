# run: verify
# Sums of uint64 wrap at 64 bits, and conditions on them decide others.


@T.prim_func
def f(A: T.Buffer((3,), "int32"), P: T.Buffer((3,), "uint64")):
    t = T.alloc_buffer((1,), "int32")
    if P[0] + P[1] == T.uint64(7) and P[0] <= T.uint64(3):
        t[0] = 1
        if T.uint64(4) <= P[1]:
            A[0] = t[0]
    if P[0] < P[2]:
        if P[2] < P[1]:
            A[1] = 2
    if T.uint64(9223372036854775807) < P[2]:
        A[2] = T.cast(P[2] - T.uint64(1), "int32")

# ---- other
@T.prim_func
def f(A: T.Buffer((3,), "int32"), P: T.Buffer((3,), "uint64")):
    if P[1] + P[0] == T.uint64(7) and P[0] <= T.uint64(3):
        A[0] = 1
    if P[0] < P[2] and P[2] < P[1]:
        if P[0] < P[1]:
            A[1] = 2
    if T.uint64(9223372036854775807) < P[2]:
        if T.uint64(0) < P[2]:
            A[2] = T.cast(P[2] + T.uint64(18446744073709551615), "int32")

# ---- expected
