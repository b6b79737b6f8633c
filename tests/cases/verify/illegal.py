# run: verify
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i + 1]
        #^^^^^^^^^^^^^^ error: index 4 is out of range for axis 0 of `A`, which has 4
        # note: with i = 3

# ---- other
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i]
