# run: verify
# What the first leaves arbitrary may be anything.


@T.prim_func
def f(A: T.Buffer((14,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        B[i] = T.if_then_else(i < 14, A[T.min(i, 13)], T.undef(dtype="int32"))

# ---- other
@T.prim_func
def f(A: T.Buffer((14,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        B[i] = T.if_then_else(i < 14, A[T.min(i, 13)], 7)

# ---- expected
