# run: opt
# Zeros are written first, then what is inside is copied without a condition.
@T.prim_func
def main(A: T.Buffer((12,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.if_then_else(vi >= 2 and vi < 14, A[vi - 2], 0.0)

# ---- schedule
i, = sch.get_loops("B")
sch.decompose_padding("B", i)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((12,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B_pad_const"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.float32(0.0)
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                B[vi + 2] = A[vi]
