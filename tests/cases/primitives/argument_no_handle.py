# run: opt
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32")):
    for i, j in T.grid(6, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0

# ---- schedule
sch.annotate(3, "note", 1)
             # error: argument `block_or_loop` of `annotate` is a whole number, expected a block or a loop
