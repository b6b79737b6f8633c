# run: verify
# The sizes that are tried have a first element, or are left out.


@T.prim_func
def f(A: T.Buffer(("n",), "int32"), C: T.Buffer((1,), "int32")):
    n = T.int32()
    C[0] = A[0] * 2

# ---- other
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), C: T.Buffer((1,), "int32")):
    n = T.int32()
    C[0] = A[0] + A[0]

# ---- expected
# exit: 3
# undecided: `f` is equal at n=1; n=5; n=7; n=8, which proves nothing for other sizes
