# run: opt --pass remove_branching_through_overcompute --pass-config wrap_indices=1
# Guards are tried together. That one has to be put back says nothing about the others: the predicate
# of `largest` keeps five elements out.


@T.prim_func
def func(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    for j, i in T.grid(1, 12):
        with T.block("sum"):
            vj, vi = T.axis.remap("SR", [j, i])
            with T.init():
                B[vj] = T.float32(0)
            B[vj] = B[vj] + C[vi]
    for i, k in T.grid(4, 4):
        if i * 4 + k < 12 and i * 4 + k < 10:
            B[i * 4 + k] = T.if_then_else(11 - k >= 0 and 11 - k < 12, A[11 - k], T.float32(0))
    for i in range(12):
        if not i < 10:
            B[i] = T.float32(0)
    for j, i in T.grid(2, 12):
        with T.block("largest"):
            vj, vi = T.axis.remap("SR", [j, i])
            T.where(i < 7)
            with T.init():
                C[vj] = T.float32(0)
            C[vj] = T.max(C[vj], A[vi])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
        for j, i in T.grid(1, 12):
            with T.block("sum"):
                vj, vi = T.axis.remap("SR", [j, i])
                with T.init():
                    B[vj] = T.float32(0.0)
                B[vj] = B[vj] + C[vi]
        for i, k in T.grid(4, 4):
            if i * 4 + k < 10:
                B[i * 4 + k] = A[11 - k]
        for i in range(12):
            if not i < 10:
                B[i] = T.float32(0.0)
        for j, i in T.grid(2, 12):
            with T.block("largest"):
                vj, vi = T.axis.remap("SR", [j, i])
                T.where(i < 7)
                with T.init():
                    C[vj] = T.float32(0.0)
                C[vj] = T.max(C[vj], A[vi])
