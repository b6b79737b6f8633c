# run: opt --pass use_border --explain
# The border of a texture gives zero: what the guards of columns give. A row out of its own image is a row
# of the next one, so the guard of rows stays, with the point.
@T.prim_func
def main(X: T.Buffer((10, 28), "float32", scope="global.texture", axis_separators=[1]), B: T.Buffer((2, 5, 9, 4), "float32")):
    for n, h, w, c in T.grid(2, 5, 9, 4):
        B[n, h, w, c] = T.if_then_else(1 <= h and 1 <= w and w < 8, X[n * 5 + h - 1, w * 4 + c - 4], T.float32(0))
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the guard `1 <= h` of a read of `X` stays: where it fails, the read is inside of the texture
        # note: at n=1, h=0, w=1, c=0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((10, 28), "float32", scope="global.texture", axis_separators=[1]), B: T.Buffer((2, 5, 9, 4), "float32")):
        for n, h, w, c in T.grid(2, 5, 9, 4):
            B[n, h, w, c] = T.if_then_else(1 <= h, X[n * 5 + h - 1, w * 4 + c - 4], T.float32(0.0))
