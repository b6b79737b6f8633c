# run: verify
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[A[i]]

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[3 - i] = A[A[3 - i]]

# ---- expected
# exit: 3
# undecided: `f`: an index depends on data: `A[i]`
#   --> <stdin>:5:9
#    5 |         B[i] = A[A[i]]
