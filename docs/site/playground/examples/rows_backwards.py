# The same from the last column to the first, two at a time.
@T.prim_func
def rows(A: T.Buffer((5, 7), "int32"), S: T.Buffer((5,), "int32")):
    for i in range(5):
        S[i] = A[i, 6]
        for k in range(3):
            S[i] = S[i] + A[i, 5 - 2 * k] + A[i, 4 - 2 * k]
