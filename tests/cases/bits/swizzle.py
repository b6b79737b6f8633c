# run: opt
# layout: A[i, j] at [i, j ^ i % 16]
# A swizzle of rows: no padding, and its own inverse.
@T.prim_func
def main(A: T.Buffer((24, 16), "float32"), B: T.Buffer((24, 16), "float32")):
    for i, j in T.grid(24, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "A", lambda i, j: [i, j ^ (i % 16)])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((24, 16), "float32"), B: T.Buffer((24, 16), "float32")):
        for i, j in T.grid(24, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, T.bitwise_xor(vj, vi % 16)] * T.float32(2.0)
