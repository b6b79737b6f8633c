# run: opt --pass unroll_loop --pass-config copies=6
# A loop that becomes three statements, around one that becomes two; one of a size that is not known,
# one that does not begin at zero, one that is not unrolled, and one of more iterations than are copied.
@T.prim_func
def f(a: T.handle, B: T.Buffer((3, 4), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    for i in T.unroll(3):
        for j in T.unroll(2):
            B[i, j] = A[i + j]
    for k in T.unroll(n):
        A[k] = k
    for k in T.unroll(1, 3):
        A[k] = A[k] + 1
    for k in range(2):
        A[k] = A[k] * 2
    for k in T.unroll(7):
        for j in T.unroll(2):
            A[k] = A[k] + j
