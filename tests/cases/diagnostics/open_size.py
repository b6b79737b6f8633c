# run: run
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for i, j in T.grid(n, m):
        B[j, i] = A[i, j]
# error: the module leaves these sizes open: `m`, `n`
# help: give each a size: --dim m=SIZE --dim n=SIZE; or give the inputs
