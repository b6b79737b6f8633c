# run: verify --dim n=1..40
# The sizes of a range are compared one by one: a proof for all of them. Outside of it they differ.
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), C: T.Buffer((1,), "int32")):
    n = T.int32()
    C[0] = A[0] * 2

# ---- other
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), C: T.Buffer((1,), "int32")):
    n = T.int32()
    C[0] = A[0] + A[0]
    if n > 40:
        C[0] = 3

# ---- expected
