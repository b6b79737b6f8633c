# run: opt
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32")):
    for i, j in T.grid(6, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0

# ---- schedule
sch.cache_read("B", buffer=0, read_buffer_index=0)
                                                # error: `cache_read` gets the argument `read_buffer_index` twice
