# run: opt
# layout: B[i, j] at [i // 8, i % 8, j ^ i % 8], padding 0
# The padding of what is written: it gets its value where the inverse leads beyond the shape.
@T.prim_func
def main(A: T.Buffer((11, 6), "float32"), B: T.Buffer((11, 6), "float32")):
    for i, j in T.grid(11, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "B", lambda i, j: [i // 8, i % 8, j ^ (i % 8)], pad_value=0.0)
