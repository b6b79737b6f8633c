# A copy of 33 x 40 turned round.
@T.prim_func
def turn(A: T.Buffer((33, 40), "float32"), B: T.Buffer((40, 33), "float32")):
    for i, j in T.grid(40, 33):
        with T.block("turn"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
