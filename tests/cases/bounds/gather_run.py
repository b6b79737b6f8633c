# run: run --seed 3
@T.prim_func
def gather(A: T.Buffer((10, 4), "float32"), B: T.Buffer((6, 4), "float32")):
    at = T.allocate_const([1, 3, 9, 10, 0, -1], "int32", [6])
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[at[vi], vj]
            #^^^^^^^^^^^^^^^^^^^^^^^^ error: an assertion of `gather` failed: `A[10, 0]` is out of range: axis 0 has extent 10
