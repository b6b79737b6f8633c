# run: verify
# The largest integer plus one is the smallest one.


@T.prim_func
def f(A: T.Buffer((1,), "int32"), P: T.Buffer((1,), "int32")):
    if P[0] + 1 <= 3:
        A[0] = 1

# ---- other
@T.prim_func
def f(A: T.Buffer((1,), "int32"), P: T.Buffer((1,), "int32")):
    if P[0] <= 2:
        A[0] = 1

# ---- expected
# exit: 1
# `f` differs in `A`[0]
#   first:  (1 if ((P[0] + 1) <= 3) else A[0])
#   second: (1 if (P[0] <= 2) else A[0])
#   with A[0] = -2147483648, P[0] = 2147483647: 1 and -2147483648
