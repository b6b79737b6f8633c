# run: opt --pass lower
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((8,), "float32")):
    V = T.decl_buffer((8,), "float32", data=A.data)
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: function `f`: `V` is a view of 32 bytes, and its memory has 16
    for i in range(8):
        B[i] = V[i]
