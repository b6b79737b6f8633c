@T.prim_func
def total(A: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
    B[0] = 0
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[0] = B[0] + A[io, ii]
