# run: opt --pass simplify
# semantics: not compared, because the seeded data breaks the assumption
# Sums with padding that is zero leave what was there, so the cells that only padding reaches are
# still zero after the convolution; the others are not known.
@T.prim_func
def f(X: T.Buffer((5, 4), "int32"), W: T.Buffer((2,), "int32"), Y: T.Buffer((20,), "int32")):
    for a, b in T.grid(5, 4):
        T.assume(4 <= a * 4 + b and a * 4 + b < 13 or X[a, b] == 0)
    for i in range(20):
        Y[i] = 0
    for i, k in T.grid(20, 2):
        if i + k < 20:
            Y[i + k] = Y[i + k] + W[k] * X[i // 4, i % 4]
    for i in range(20):
        if i < 4 or i >= 14:
            if Y[i] != 0:
                Y[i] = 0
    for i in range(20):
        if i >= 13:
            if Y[i] != 0:
                Y[i] = 0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(X: T.Buffer((5, 4), "int32"), W: T.Buffer((2,), "int32"), Y: T.Buffer((20,), "int32")):
        for a, b in T.grid(5, 4):
            T.assume(4 <= a * 4 + b and a * 4 + b < 13 or X[a, b] == 0)
        for i in range(20):
            Y[i] = 0
        for i, k in T.grid(20, 2):
            if i + k < 20:
                Y[i + k] = Y[i + k] + W[k] * X[i // 4, i % 4]
        for i in range(20):
            if i >= 13:
                if Y[i] != 0:
                    Y[i] = 0
