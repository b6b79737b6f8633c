# run: run
# A row of `B` is written by nobody, and read.
@T.prim_func
def f(A: T.Buffer((5, 4), "int32"), B: T.Buffer((5, 4), "int32")):
    for i, j in T.grid(5, 4):
        if i != 3:
            B[i, j] = A[i, j]
    for i, j in T.grid(5, 4):
        B[i, j] = B[i, j] + 1
        #^^^^^^^^^^^^^^^^^^^^ error: `f` reads its parameter `B` before it writes it
        # help: read one parameter and write another
