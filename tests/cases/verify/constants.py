# run: verify
@T.prim_func
def f(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
    table = T.allocate_const([2, 0, 5], "float32", [3])
    for i in range(3):
        B[i] = A[i] * table[i]

# ---- other
@T.prim_func
def f(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
    B[0] = A[0] * T.float32(2)
    B[1] = A[1] * T.float32(0)
    B[2] = A[2] * T.float32(6)

# ---- expected
# exit: 1
# `f` differs in `B`[2]
#   first:  (A[2] * 5.0)
#   second: (A[2] * 6.0)
#   with A[2] = 2.0: 10.0 and 12.0
