# run: diff
@T.prim_func
def f(A: T.Buffer((1,), "bool")):
    i = T.int32()
    j = T.int32()
    if i < j:
        A[0] = True

# ---- other
@T.prim_func
def f(A: T.Buffer((1,), "bool")):
    i = T.int32()
    j = T.int32()
    if j < i:
        A[0] = True

# ---- expected
# exit: 1
# function `f`, condition: `i < j` against `j < i`
#   --> <stdin>:6:5
#    6 |     if i < j:
#   --> other.py:5:5
#    5 |     if j < i:
