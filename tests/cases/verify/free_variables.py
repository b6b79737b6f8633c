# run: verify
# What nothing defines is a symbol of its name: the same one on both sides.


@T.prim_func
def f(A: T.Buffer((2,), "int32")):
    i = T.int32()
    j = T.int32()
    A[0] = i - j
    A[1] = T.if_then_else(i < j, i, j)

# ---- other
@T.prim_func
def f(A: T.Buffer((2,), "int32")):
    j = T.int32()
    i = T.int32()
    if i < j:
        A[1] = i
    else:
        A[1] = j
    A[0] = -1 * j + i

# ---- expected
