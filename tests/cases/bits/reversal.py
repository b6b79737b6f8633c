# run: opt
# layout: A[i] at [i % 2 * 8 + i // 2 % 2 * 4 + i // 4 % 2 * 2 + i // 8], padding 0
# Reversal of four digits, as of a fast Fourier transform, of thirteen elements.
@T.prim_func
def main(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
    for i in range(13):
        with T.block("B"):
            vi = T.axis.spatial(13, i)
            B[vi] = A[vi] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "A", lambda i: [(i & 1) << 3 | (i & 2) << 1 | (i & 4) >> 1 | i >> 3], pad_value=0.0)
