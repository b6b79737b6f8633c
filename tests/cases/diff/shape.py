# run: diff
@T.prim_func
def f(A: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        A[i, j] = 0.0

# ---- other
@T.prim_func
def f(A: T.Buffer((4, 5), "float32")):
    for i, j in T.grid(4, 4):
        A[i, j] = 0.0

# ---- expected
# exit: 1
# function `f`, parameter 0, buffer `A`, shape: `4` against `5`
#   --> <stdin>:3:5
#    3 | def f(A: T.Buffer((4, 4), "float32")):
#   --> other.py:2:5
#    2 | def f(A: T.Buffer((4, 5), "float32")):
