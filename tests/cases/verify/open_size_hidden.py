# run: verify
# What only the function itself sees, and a flat index, for all sizes.


@T.prim_func
def f(A: T.Buffer(("n", "n", "n"), "int32"), B: T.Buffer(("n * n * n",), "int32")):
    n = T.int32()
    T_1 = T.alloc_buffer((n + 3,), "int32")
    for i in range(n):
        T_1[i] = i
    for i in range(n * n * n):
        with T.block("B"):
            v = T.axis.spatial(n * n * n, i)
            B[v // (n * n) * (n * n) + v % (n * n) // n * n + v % n] = v

# ---- other
@T.prim_func
def f(A: T.Buffer(("n", "n", "n"), "int32"), B: T.Buffer(("n * n * n",), "int32")):
    n = T.int32()
    for i in range(n * n * n):
        with T.block("B"):
            v = T.axis.spatial(n * n * n, i)
            B[v] = v

# ---- expected
