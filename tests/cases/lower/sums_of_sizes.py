# run: opt --pass lower
# sizes: n=9, m=16, k=3
# An extent is no more than a tensor can have, also where it is a sum: of half as much again as a size, as an image
# that is resized, or of what was and what is new, as a cache that grows. Tiles of it need no checks. Of `m * (m + 7)`
# in a loop nothing says so; an index that runs up to it still stays below it.


@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle):
    n, m, k = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n + n // 2,), "float32")
    B = T.match_buffer(b, (4, m + k), "float32")
    C = T.match_buffer(c, (m * (m + 7),), "float32")
    for i0 in range((n + n // 2 + 7) // 8):
        for i1 in range(8):
            if i0 * 8 + i1 < n + n // 2:
                A[i0 * 8 + i1] = T.float32(1.0)
    for i, j0 in T.grid(4, (m + k + 7) // 8):
        for j1 in range(8):
            if j0 * 8 + j1 < m + k:
                B[i, j0 * 8 + j1] = T.float32(1.0)
    for i in range(m * (m + 7)):
        C[i] = T.float32(1.0)
