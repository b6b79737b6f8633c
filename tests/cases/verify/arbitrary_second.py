# run: verify
# What the second leaves arbitrary is a difference.


@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i]

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = T.if_then_else(i < 3, A[i], T.undef(dtype="int32"))

# ---- expected
# exit: 1
# `f` differs in `B`[3]
#   first:  A[3]
#   second: undef
#   with A[3] = 2: 2 and any value
