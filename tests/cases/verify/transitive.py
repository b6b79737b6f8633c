# run: verify
# What follows from the orders that are taken to hold is no case of its own.


@T.prim_func
def f(A: T.Buffer((4,), "bool"), X: T.Buffer((3,), "float32"), Y: T.Buffer((2,), "float32")):
    i = T.int32()
    j = T.int32()
    k = T.int32()
    if i < j and j <= k:
        A[0] = i < k
    if i == j and k < j:
        A[1] = i != k
    if i == j and j != k:
        A[3] = i == k
    if i < 3 and 5 <= j:
        A[2] = j < i
    Y[0] = T.if_then_else(X[0] < X[1] and X[1] < X[2], T.Select(X[0] < X[2], X[0], X[1]), X[2])
    Y[1] = X[0]

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "bool"), X: T.Buffer((3,), "float32"), Y: T.Buffer((2,), "float32")):
    i = T.int32()
    j = T.int32()
    k = T.int32()
    if i < j and j <= k:
        A[0] = True
    if i == j and k < j:
        A[1] = True
    if i == j and j != k:
        A[3] = False
    if i < 3 and 5 <= j:
        A[2] = False
    Y[0] = T.if_then_else(X[1] < X[2] and X[0] < X[1], X[0], X[2])
    Y[1] = X[0]

# ---- expected
