# run: opt --pass remove_overcompute_through_branching
# An update by a value that is chosen by a condition changes nothing where the other value is neutral: padding
# that is the least value of a maximum, and zero of a sum. The padding of `mean` is no zero, and counts.
@T.prim_func
def windows(X: T.Buffer((14,), "float32"), M: T.Buffer((14,), "float32"), S: T.Buffer((14,), "float32"), C: T.Buffer((14,), "float32")):
    for i in range(14):
        M[i] = T.float32("-inf")
        for k in range(3):
            M[i] = T.max(M[i], T.if_then_else(i + k >= 1 and i + k < 15, X[i + k - 1], T.float32("-inf")))
    for i in range(14):
        S[i] = T.float32(0)
        for k in range(3):
            S[i] = S[i] + T.if_then_else(i + k >= 1 and i + k < 15, X[i + k - 1], T.float32(0))
    for i in range(14):
        C[i] = T.float32(0)
        for k in range(3):
            C[i] = C[i] + T.if_then_else(i + k >= 1 and i + k < 15, X[i + k - 1], T.float32(2))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def windows(X: T.Buffer((14,), "float32"), M: T.Buffer((14,), "float32"), S: T.Buffer((14,), "float32"), C: T.Buffer((14,), "float32")):
        for i in range(14):
            M[i] = T.float32("-inf")
            for k in range(3):
                if i + k >= 1 and i + k < 15:
                    M[i] = T.max(M[i], T.if_then_else(i + k >= 1 and i + k < 15, X[i + k - 1], T.float32("-inf")))
        for i in range(14):
            S[i] = T.float32(0.0)
            for k in range(3):
                if i + k >= 1 and i + k < 15:
                    S[i] = S[i] + T.if_then_else(i + k >= 1 and i + k < 15, X[i + k - 1], T.float32(0.0))
        for i in range(14):
            C[i] = T.float32(0.0)
            for k in range(3):
                C[i] = C[i] + T.if_then_else(i + k >= 1 and i + k < 15, X[i + k - 1], T.float32(2.0))
