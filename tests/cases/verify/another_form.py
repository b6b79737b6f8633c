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
# exit: 3
# undecided: `f`: `B`[0] is `((A[0] * 2) if (3 < A[0]) else 5)` and `((A[0] + A[0]) if (3 < A[0]) else 5)`, which could not be shown equal, and no inputs were found that tell them apart
