# run: opt --pass lower
@T.prim_func
def f(A: T.Buffer((10,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i]
        #^^^^^^^^^^ error: function `f`: `A[i]` is out of range at i=15: axis 0 has extent 10
