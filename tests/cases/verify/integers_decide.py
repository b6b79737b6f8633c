# run: verify
# Conditions on parameters and free integers are one where they hold for the same integers.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), i: T.int32, j: T.int32):
    k = T.int32()
    if 0 <= i:
        if i <= 0:
            A[0] = 1
    if not (i < 3 or j >= 5):
        A[1] = 1
    if i < 3 or j < 4:
        A[2] = 1
    A[3] = T.min(i, 5)
    A[4] = T.max(T.min(i, 7), 0)
    if i >= 0 and i < 8:
        A[5] = i // 4 * 4 + i % 4
    if i % 4 < 4:
        A[6] = i
    if i % 2 == 0:
        if i % 4 == 2:
            A[7] = 1
        else:
            A[7] = 2
    if 0 <= i and i < j and j < k and k < 100:
        if i + 2 <= k:
            A[8] = 1
    A[9] = T.Select(0 < i, T.max(i, 1), 1)
    if i < j and j < k:
        A[10] = T.if_then_else(i < k, 1, 2)
    x: T.int32 = i + 1
    if 0 <= i and i < 4:
        if 1 <= x:
            A[11] = x

# ---- other
@T.prim_func
def f(A: T.Buffer((16,), "int32"), i: T.int32, j: T.int32):
    k = T.int32()
    if i == 0:
        A[0] = 1
    if i >= 3 and j < 5:
        A[1] = 1
    if i < 3:
        A[2] = 1
    else:
        if j <= 3:
            A[2] = 1
    if i < 5:
        A[3] = i
    else:
        A[3] = 5
    A[4] = T.if_then_else(i < 0, 0, T.if_then_else(7 < i, 7, i))
    if i >= 0 and i < 8:
        A[5] = i
    A[6] = i
    if i % 2 == 0:
        A[7] = T.if_then_else(i % 4 == 0, 2, 1)
    if 0 <= i and i < j and j < k and k < 100:
        A[8] = 1
    A[9] = T.max(i, 1)
    if i < j and j < k:
        A[10] = 1
    if 0 <= i and i < 4:
        A[11] = i + 1

# ---- expected
