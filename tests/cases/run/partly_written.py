# run: run
# The first loop writes a part of `B` only: the second one reads what nobody gave.
@T.prim_func
def f(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
    for i in range(10):
        if i >= 4:
            B[i] = A[i]
    for i in range(10):
        B[i] = B[i] + 1
        #^^^^^^^^^^^^^^ error: `f` reads its parameter `B` before it writes it
        # help: read one parameter and write another
