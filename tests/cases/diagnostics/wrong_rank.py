# run: opt
@T.prim_func
def f(A: T.Buffer((4, 4), "float32")):
    for i in range(4):
        A[i] = 1.0
        #^^^ error: `A` has 2 axes, found 1 index
