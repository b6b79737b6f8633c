# run: opt
# layout: y[n, h, w, c] at [c, w, h, n]
@T.prim_func
def main(x: T.Buffer((2, 3, 5, 8), "float32"), y: T.Buffer((2, 3, 5, 8), "float32")):
    for n, h, w, c in T.grid(2, 3, 5, 8):
        with T.block("compute"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            y[vn, vh, vw, vc] = x[vn, vh, vw, vc] + 1.0

# ---- schedule
sched.transform_layout(block='compute', buffer='y', lambda n, h, w, c: [c, w, h, n])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(x: T.Buffer((2, 3, 5, 8), "float32"), y: T.Buffer((8, 5, 3, 2), "float32")):
        for n, h, w, c in T.grid(2, 3, 5, 8):
            with T.block("compute"):
                vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                y[vc, vw, vh, vn] = x[vn, vh, vw, vc] + T.float32(1.0)
