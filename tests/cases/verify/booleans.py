# run: verify
# Cells that are true or false.


@T.prim_func
def f(B: T.Buffer((6,), "bool"), A: T.Buffer((1,), "int32"), i: T.int32):
    if B[0]:
        if B[0] and i < 3:
            A[0] = 1
    B[1] = T.Select(B[2], True, i < 3)
    B[3] = i < 3
    B[4] = not B[3]
    B[5] = (i < 4 and 2 < i) == (i == 3)

# ---- other
@T.prim_func
def f(B: T.Buffer((6,), "bool"), A: T.Buffer((1,), "int32"), i: T.int32):
    if i <= 2 and B[0]:
        A[0] = 1
    B[1] = B[2] or i < 3
    B[3] = i <= 2
    B[4] = 3 <= i
    B[5] = True

# ---- expected
