# run: opt
@T.prim_func
def main(x: T.Buffer((2, 3, 5, 8), "float32"), y: T.Buffer((2, 3, 5, 8), "float32")):
    for n, h, w, c in T.grid(2, 3, 5, 8):
        with T.block("compute"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            y[vn, vh, vw, vc] = x[vn, vh, vw, vc] + 1.0

# ---- schedule
sched.transform_layout(block='compute', buffer='y', lambda i: [i[0], te.AXIS_SEPARATOR, i[1], i[2], te.AXIS_SEPARATOR, i[3]])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(x: T.Buffer((2, 3, 5, 8), "float32"), y: T.Buffer((2, 3, 5, 8), "float32", axis_separators=[1, 3])):
        for n, h, w, c in T.grid(2, 3, 5, 8):
            with T.block("compute"):
                vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                y[vn, vh, vw, vc] = x[vn, vh, vw, vc] + T.float32(1.0)
