# run: opt --pass lower
# A place inside of the buffer, and an index outside of its axis.
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        B[i] = A[i, 4 - i]
        #^^^^^^^^^^^^^^^^^ error: function `f`: `A[i, 4 - i]` is out of range at i=0: axis 1 has extent 4
