# run: opt
# layout: B[n, h, w, c] at [n, c // 4, h, w, c % 4]
@T.prim_func
def func(A: T.Buffer((2, 5, 5, 8), "float32"), B: T.Buffer((2, 5, 5, 8), "float32")):
    for n, h, w, c in T.grid(2, 5, 5, 8):
        with T.block("B"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            B[vn, vh, vw, vc] = A[vn, vh, vw, vc]

# ---- schedule
s[B].transform_layout("B", lambda n, h, w, c: [n, c//4, h, te.AXIS_SEPARATOR, w, c%4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((2, 5, 5, 8), "float32"), B: T.Buffer((2, 2, 5, 5, 4), "float32", axis_separators=[3])):
        for n, h, w, c in T.grid(2, 5, 5, 8):
            with T.block("B"):
                vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                B[vn, vc // 4, vh, vw, vc % 4] = A[vn, vh, vw, vc]
