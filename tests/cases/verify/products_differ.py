# run: verify
# A product may wrap: it may be less than its factors.


@T.prim_func
def f(A: T.Buffer((1,), "int32"), n: T.int32, m: T.int32):
    if 0 < n and 0 < m:
        if n <= n * m:
            A[0] = 1

# ---- other
@T.prim_func
def f(A: T.Buffer((1,), "int32"), n: T.int32, m: T.int32):
    if 0 < n and 0 < m:
        A[0] = 1

# ---- expected
# exit: 1
# `f` differs in `A`[0]
#   first:  ((1 if (n <= (n * m)) else A[0]) if ((n > 0) and (m > 0)) else A[0])
#   second: (1 if ((n > 0) and (m > 0)) else A[0])
#   with A[0] = -2147483647, n = 2147483646, m = 349146110: -2147483647 and 1
