# run: verify
# Conditions on data are taken to be true and then false, with what follows from them.


@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((2,), "bool")):
    if A[0] < A[1] and A[2] < A[3]:
        B[0] = 1
    else:
        B[0] = 2
    B[1] = T.if_then_else(A[0] < A[1], T.if_then_else(A[1] <= A[0], 3, 4), 5)
    B[2] = T.max(A[0], T.if_then_else(A[2] == A[3], A[1], A[1] + 1))
    B[3] = T.if_then_else(A[0] == A[1], T.if_then_else(A[1] < A[0], 6, 7), 8)
    C[0] = A[0] < 3 and (A[1] < 4 or A[2] < 5)
    C[1] = not (A[0] < 3 and A[1] < 4)

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((2,), "bool")):
    B[0] = 2
    if A[0] < A[1]:
        if A[2] < A[3]:
            B[0] = 1
    B[1] = T.if_then_else(A[0] < A[1], 4, 5)
    if A[2] == A[3]:
        B[2] = T.max(A[1], A[0])
    else:
        B[2] = T.max(A[1] + 1, A[0])
    B[3] = T.if_then_else(A[0] == A[1], 7, 8)
    C[0] = (A[0] < 3 and A[1] < 4) or (A[2] < 5 and A[0] < 3)
    C[1] = 3 <= A[0] or 4 <= A[1]

# ---- expected
