# run: opt --pass lower
@T.prim_func
def f(A: T.Buffer((10,), "float32"), B: T.Buffer((16,), "float32")):
    for io, ii in T.grid(4, 4):
        if io * 4 + ii < 14:
            B[io * 4 + ii] = A[io * 4 + ii]
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: function `f`: `A[io * 4 + ii]` is out of range at io=2, ii=2: axis 0 has extent 10
