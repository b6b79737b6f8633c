# run: verify
# What is illegal whatever the data are: where, and at which iteration.
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("quotient"):
            v = T.axis.spatial(4, i)
            B[v] = A[v] // (v - 2)
            #^^^^^^^^^^^^^^^^^^^^^ error: division by zero in block `quotient`
            # note: with i = 2

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i]
