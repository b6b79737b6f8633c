# run: opt --pass use_border --explain
# Padding with -inf, as a maximum needs it, is not what the border gives.
@T.prim_func
def main(X: T.Buffer((5, 28), "float32", scope="global.texture", axis_separators=[1]), B: T.Buffer((5, 9, 4), "float32")):
    for h, w, c in T.grid(5, 9, 4):
        B[h, w, c] = T.if_then_else(1 <= w and w < 8, X[h, w * 4 + c - 4], T.float32("-inf"))
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: the guard `1 <= w and w < 8` of a read of `X` stays: out of range the texture gives 0, and the guard gives T.float32("-inf")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((5, 28), "float32", scope="global.texture", axis_separators=[1]), B: T.Buffer((5, 9, 4), "float32")):
        for h, w, c in T.grid(5, 9, 4):
            B[h, w, c] = T.if_then_else(1 <= w and w < 8, X[h, w * 4 + c - 4], T.float32("-inf"))
