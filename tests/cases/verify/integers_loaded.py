# run: verify
# Integers from memory; sums of them wrap at the ends of their type.


@T.prim_func
def f(A: T.Buffer((8,), "int32"), P: T.Buffer((4,), "int32"), U: T.Buffer((2,), "uint8"), L: T.Buffer((2,), "int64")):
    for i in range(4):
        if P[i] <= 2:
            A[i] = 1
    if P[0] < 100 and P[0] + 1 <= 3:
        A[4] = 1
    if P[0] > 2147483646:
        A[5] = P[0]
    if U[0] < T.uint8(1):
        U[1] = U[0]
    if L[0] // T.int64(4) == T.int64(1):
        L[1] = L[0] % T.int64(4)

# ---- other
@T.prim_func
def f(A: T.Buffer((8,), "int32"), P: T.Buffer((4,), "int32"), U: T.Buffer((2,), "uint8"), L: T.Buffer((2,), "int64")):
    for i in range(4):
        if P[i] < 3:
            A[i] = 1
    if P[0] <= 2 and P[0] != 2147483647:
        A[4] = 1
    if P[0] == 2147483647:
        A[5] = 2147483647
    if U[0] == T.uint8(0):
        U[1] = T.uint8(0)
    if T.int64(4) <= L[0] and L[0] < T.int64(8):
        L[1] = L[0] - T.int64(4)

# ---- expected
