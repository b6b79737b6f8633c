# run: verify
# Terms of another form are not called different without inputs that show it.


@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        if A[i] > 3:
            B[i] = A[i] * 2
        else:
            B[i] = 5

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = 5
    for i in range(4):
        if 3 < A[i]:
            B[i] = A[i] + A[i] * 1

# ---- expected
