# run: diff
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + 1.0

# ---- other
@T.prim_func
def g(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
    for k in range(4):
        with T.block("compute"):
            vk = T.axis.spatial(4, k)
            Y[vk] = X[vk] + 1.0

# ---- expected
