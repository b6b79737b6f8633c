# run: verify
# An extent that depends on data, and that conditions bound.


@T.prim_func
def f(A: T.Buffer((8,), "int32"), n: T.int32):
    for j in range(T.min(T.max(n, 0), 8)):
        A[j] = A[j] * 2
    if 0 <= n and n < 8:
        for j in range(n):
            A[j] = 0

# ---- other
@T.prim_func
def f(A: T.Buffer((8,), "int32"), n: T.int32):
    for j in range(8):
        if j < n:
            A[j] = A[j] + A[j]
    for j in range(8):
        if j < n and n < 8:
            A[j] = 0

# ---- expected
