# run: diff
# Variables that nothing defines are the same ones where their names are, in any order.


@T.prim_func
def f(A: T.Buffer((1,), "bool")):
    i = T.int32()
    j = T.int32()
    if i < j:
        A[0] = True

# ---- other
@T.prim_func
def f(A: T.Buffer((1,), "bool")):
    j = T.int32()
    i = T.int32()
    if i < j:
        A[0] = True

# ---- expected
