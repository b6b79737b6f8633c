# run: opt
# layout: A[i, j] at [i // 8, i % 8, j ^ i % 8], padding 0
# Ragged rows and columns: what lies beyond them in the next powers of two is padding.
@T.prim_func
def main(A: T.Buffer((11, 6), "float32"), B: T.Buffer((11, 6), "float32")):
    for i, j in T.grid(11, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "A", lambda i, j: [i // 8, i % 8, j ^ (i % 8)], pad_value=0.0)
