# run: opt --pass lower
# sizes: n=30, m=24
# Where the index is out of range is decided at the end of each loop: there are no loops of assertions.
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (m,), "float32")
    for i, j, k in T.grid(m, 5, 3):
        B[i] = B[i] + A[i + j - k + 2]
    for i in range(m):
        B[i] = B[i] + A[7 - i // 4] * A[i % 3]
