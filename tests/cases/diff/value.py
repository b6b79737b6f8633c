# run: diff
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] + 1.0

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] + 2.0

# ---- expected
# exit: 1
# function `f`, loop `i`, store to `B`, value: `A[i] + T.float32(1.0)` against `A[i] + T.float32(2.0)`
#   --> <stdin>:5:9
#    5 |         B[i] = A[i] + 1.0
#   --> other.py:4:9
#    4 |         B[i] = A[i] + 2.0
