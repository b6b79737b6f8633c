# run: verify
# At size zero there is no first element.


@T.prim_func
def f(A: T.Buffer(("n",), "int32"), C: T.Buffer((1,), "int32")):
    n = T.int32()
    for i in range(n):
        C[0] = A[0]

# ---- other
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), C: T.Buffer((1,), "int32")):
    n = T.int32()
    C[0] = A[0]

# ---- expected
# exit: 1
# `f` at n=0 is illegal in the second module only
#   second: index 0 is out of range for axis 0 of `A`, which has 0
