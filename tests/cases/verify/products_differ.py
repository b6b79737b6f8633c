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
