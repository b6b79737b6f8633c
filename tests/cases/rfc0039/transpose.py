# run: opt
# semantics: not compared, because the arguments lie in another way; the tests of the schedule crate compare cell by cell
@T.prim_func
def main(x: T.Buffer((16, 64, 64, 128), "float32"), y: T.Buffer((16, 64, 64, 128), "float32")):
    for n, h, w, c in T.grid(16, 64, 64, 128):
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
    def main(x: T.Buffer((16, 64, 64, 128), "float32"), y: T.Buffer((128, 64, 64, 16), "float32")):
        for n, h, w, c in T.grid(16, 64, 64, 128):
            with T.block("compute"):
                vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                y[vc, vw, vh, vn] = x[vn, vh, vw, vc] + T.float32(1.0)
