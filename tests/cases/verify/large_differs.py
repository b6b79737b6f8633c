# run: verify
# Equal flow but for one output: nothing is claimed that does not hold.


@T.prim_func
def f(A: T.Buffer((64, 64), "int32"), B: T.Buffer((64, 64), "int32")):
    for i, j in T.grid(64, 64):
        B[i, j] = A[i, j] + 1

# ---- other
@T.prim_func
def f(A: T.Buffer((64, 64), "int32"), B: T.Buffer((64, 64), "int32")):
    for i, j in T.grid(64, 64):
        B[i, j] = A[i, j] + 1
    B[63, 62] = A[63, 63] + 1

# ---- expected
# exit: 1
# `f` differs in `B`[63, 62]
#   first:  (A[63, 62] + 1)
#   second: (A[63, 63] + 1)
#   with A[63, 62] = 2, A[63, 63] = -8: 3 and -7
