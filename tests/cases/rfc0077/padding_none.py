# run: opt
# layout: B[i] at [i // 8, i % 8]
# "Padded Transformations": a size that divides has no padding.
@T.prim_func
def main(B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.Cast("float32", vi)

# ---- schedule
sched[B].transform_layout('B', lambda i: [i//8, i%8], pad_value=0.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(B: T.Buffer((2, 8), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi // 8, vi % 8] = T.Cast("float32", vi)
