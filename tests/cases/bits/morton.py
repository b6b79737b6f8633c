# run: opt
# layout: A[i, j] at [i & 1 | (j & 1) << 1 | (i & 2) << 1 | (j & 2) << 2 | (i & 4) << 2 | (j & 4) << 3], padding 0
# Morton order of a ragged square: digits of both indices in turn.
@T.prim_func
def main(A: T.Buffer((7, 5), "float32"), B: T.Buffer((7, 5), "float32")):
    for i, j in T.grid(7, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "A", lambda i, j: [(i & 1) | (j & 1) << 1 | (i & 2) << 1 | (j & 2) << 2 | (i & 4) << 2 | (j & 4) << 3], pad_value=0.0)
