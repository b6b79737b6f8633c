# run: verify
# The largest number plus one is zero, and less than every other one.


@T.prim_func
def f(A: T.Buffer((1,), "int32"), P: T.Buffer((2,), "uint64")):
    if P[0] < P[1]:
        A[0] = 1

# ---- other
@T.prim_func
def f(A: T.Buffer((1,), "int32"), P: T.Buffer((2,), "uint64")):
    if P[0] + T.uint64(1) < P[1] + T.uint64(1):
        A[0] = 1

# ---- expected
