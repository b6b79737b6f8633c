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

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((15,), "float32"), B: T.Buffer((13,), "float32")):
        for i in range(15):
            with T.block("buffer_A_assumption"):
                v_i = T.axis.spatial(15, i)
                T.assume(not v_i == v_i // 8 * 4 + 7 or A[v_i] == T.float32(0.0))
        for i in range(13):
            with T.block("B"):
                vi = T.axis.spatial(13, i)
                B[vi] = A[vi * 8 - vi // 2 * 12 - vi // 4 * 6 - vi // 8 * 3] * T.float32(2.0)
