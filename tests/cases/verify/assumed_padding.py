# run: verify
# The sum over the padding changes nothing, since it is assumed to be zero.


@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32")):
    B[0] = 0.0
    for io, ii in T.grid(4, 4):
        if io * 4 + ii < 14:
            B[0] = B[0] + A[io, ii]

# ---- other
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((1,), "float32")):
    for io, ii in T.grid(4, 4):
        T.assume(io * 4 + ii < 14 or A[io, ii] == 0.0)
    B[0] = 0.0
    for io, ii in T.grid(4, 4):
        B[0] = B[0] + A[io, ii]

# ---- expected
