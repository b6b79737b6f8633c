# run: verify
@T.prim_func
def f(A: T.Buffer((1,), "int32")):
    i = T.int32()
    j = T.int32()
    A[0] = i - j

# ---- other
@T.prim_func
def f(A: T.Buffer((1,), "int32")):
    i = T.int32()
    j = T.int32()
    A[0] = j - i

# ---- expected
# exit: 1
# `f` differs in `A`[0]
#   first:  (i - j)
#   second: (j - i)
#   with i = 2, j = -8: 10 and -10
