# run: opt --pass remove_overcompute_through_branching
# What is written later says when the first loop need not write. Asking that divides by `n`, which is
# only known not to be zero where the later store stands.


@T.prim_func
def func(A: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32"), n: T.int32):
    for i in range(12):
        C[i] = A[i]
    if n != 0 and 1 // n > 2:
        if n != 0 and 1 // n > n:
            C[n] = C[n] + C[n]
    if n != 0 and 1 // n > n:
        C[n] = 0.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32"), n: T.int32):
        for i in range(12):
            C[i] = A[i]
        if n != 0 and 1 // n > 2:
            if n != 0 and 1 // n > n:
                C[n] = C[n] + C[n]
        if n != 0 and 1 // n > n:
            C[n] = T.float32(0.0)
