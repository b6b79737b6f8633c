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
        if A[i] > 0 and i != 2:
            B[i] = A[i] // (i - 2)

# ---- expected
# exit: 3
# undecided: `f`: under a condition on data: division by zero in block `quotient`, with i = 2
#   --> <stdin>:9:17
#    9 |                 B[v] = A[v] // (v - 2)
