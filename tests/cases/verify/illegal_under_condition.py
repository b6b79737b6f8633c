# run: verify
# The same under a condition on data leaves the question open.
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("quotient"):
            v = T.axis.spatial(4, i)
            if A[v] > 0:
                B[v] = A[v] // (v - 2)

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i]

# ---- expected
# exit: 1
# `f` differs in `B`[0]
#   with A[0] = 2, all else = 0: -1 and 2
