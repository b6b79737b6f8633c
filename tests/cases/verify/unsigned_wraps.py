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
# exit: 1
# `f` differs in `A`[0]
#   first:  (1 if (P[0] < P[1]) else A[0])
#   second: (1 if ((P[0] + 1) < (P[1] + 1)) else A[0])
#   with A[0] = 1222434844, P[0] = 18446744073709551615, P[1] = 9772298966463872780: 1222434844 and 1
