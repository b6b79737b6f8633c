# run: verify
# Where integers are equal, one may stand for the other: in values, indices and below other types.


@T.prim_func
def f(A: T.Buffer((8,), "int32"), X: T.Buffer((4,), "float32"), P: T.Buffer((2,), "int32"), n: T.int32, i: T.int32):
    if A[0] == n:
        A[0] = A[0] + 1
    if i == 3:
        A[i + 1] = A[i] + i
    if n == i + 1:
        A[5] = n * 2
    if P[0] == P[1]:
        X[0] = T.Cast("float32", P[0]) * X[1]
    if 5 <= i and i < 8 and i != 6:
        A[i] = 7

# ---- other
@T.prim_func
def f(A: T.Buffer((8,), "int32"), X: T.Buffer((4,), "float32"), P: T.Buffer((2,), "int32"), n: T.int32, i: T.int32):
    if A[0] == n:
        A[0] = n + 1
    if i == 3:
        A[4] = A[3] + 3
    if n == i + 1:
        A[5] = i * 2 + 2
    if P[1] == P[0]:
        X[0] = T.Cast("float32", P[1]) * X[1]
    if i == 5:
        A[5] = 7
    if i == 7:
        A[7] = 7

# ---- expected
