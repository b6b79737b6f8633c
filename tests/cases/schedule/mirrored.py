# run: opt --pass auto_schedule,lower_blocks,simplify
# Rows that go on mirrored at both ends: the innermost loop is taken apart where its index turns, so that what
# lies between is copied as it is.
@T.prim_func
def mirrored(X: T.Buffer((7, 57), "float32"), Y: T.Buffer((9, 61), "float32")):
    for i, j in T.grid(9, 61):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[T.min(T.max(vi - 1, 1 - vi), 12 - T.max(vi - 1, 1 - vi)), T.min(T.max(vj - 2, 2 - vj), 112 - T.max(vj - 2, 2 - vj))]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def mirrored(X: T.Buffer((7, 57), "float32"), Y: T.Buffer((9, 61), "float32")):
        for i, j in T.grid(9, 2):
            Y[i, j] = X[T.min(T.max(i - 1, 1 - i), 12 - T.max(i - 1, 1 - i)), 2 - j]
        for i, j in T.grid(9, 56):
            Y[i, j + 2] = X[T.min(T.max(i - 1, 1 - i), 12 - T.max(i - 1, 1 - i)), j]
        for i, j in T.grid(9, 3):
            Y[i, j + 58] = X[T.min(T.max(i - 1, 1 - i), 12 - T.max(i - 1, 1 - i)), 56 - j]
