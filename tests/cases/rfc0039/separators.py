# run: opt
@T.prim_func
def func(A: T.Buffer((2, 3, 5, 7), "float32"), B: T.Buffer((2, 3, 5, 7), "float32")):
    for n, h, w, c in T.grid(2, 3, 5, 7):
        with T.block("B"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            B[vn, vh, vw, vc] = A[vn, vh, vw, vc]

# ---- schedule
s[B].transform_layout("B", lambda i: [i[0], te.AXIS_SEPARATOR, i[1], i[2], te.AXIS_SEPARATOR, i[3]])
sch.set_axis_separator(block="B", buffer=("read", 0), axis_separators=[2])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((2, 3, 5, 7), "float32", axis_separators=[2]), B: T.Buffer((2, 3, 5, 7), "float32", axis_separators=[1, 3])):
        for n, h, w, c in T.grid(2, 3, 5, 7):
            with T.block("B"):
                vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                B[vn, vh, vw, vc] = A[vn, vh, vw, vc]
