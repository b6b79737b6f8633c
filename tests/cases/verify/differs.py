# run: verify
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i] + 1

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i] + T.if_then_else(i == 2, 3, 1)

# ---- expected
# exit: 1
# `f` differs in `B`[2]
#   first:  (A[2] + 1)
#   second: (A[2] + 3)
#   with A[2] = 2: 3 and 5
