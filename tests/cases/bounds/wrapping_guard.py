# run: run --seed 3
# The guard always holds, since its left side is zero in 32 bits.
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        if i * 65536 * 65536 < 1:
            B[i] = A[i]
            #^^^^^^^^^^ error: an assertion of `f` failed: `A[4]` is out of range: axis 0 has extent 4
