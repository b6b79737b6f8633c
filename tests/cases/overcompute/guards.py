# run: opt --pass remove_overcompute_through_branching
# Guards around a reduction over padded memory, as the predicate of a block too; none where what
# would be kept away is of use.


@T.prim_func
def sum(A: T.Buffer((14,), "int32"), B: T.Buffer((2,), "int32")):
    L = T.alloc_buffer((4, 4), "int32")
    for i in range(14):
        L[i // 4, i % 4] = A[i]
    for ii in range(2):
        L[3, ii + 2] = 0
    B[0] = 0
    B[1] = 0
    for io, ii in T.grid(4, 4):
        B[0] = B[0] + L[io, ii]
    for io, ii in T.grid(4, 4):
        with T.block("sum"):
            vo, vi = T.axis.remap("RR", [io, ii])
            B[1] = B[1] + L[vo, vi]
    for io, ii in T.grid(4, 4):
        B[0] = B[0] + L[io, ii] + 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def sum(A: T.Buffer((14,), "int32"), B: T.Buffer((2,), "int32")):
        L = T.alloc_buffer((4, 4), "int32")
        for i in range(14):
            L[i // 4, i % 4] = A[i]
        for ii in range(2):
            L[3, ii + 2] = 0
        B[0] = 0
        B[1] = 0
        for io, ii in T.grid(4, 4):
            if io != 3 or ii < 2:
                B[0] = B[0] + L[io, ii]
        for io, ii in T.grid(4, 4):
            with T.block("sum"):
                vo, vi = T.axis.remap("RR", [io, ii])
                T.where(io != 3 or ii < 2)
                B[1] = B[1] + L[vo, vi]
        for io, ii in T.grid(4, 4):
            B[0] = B[0] + L[io, ii] + 1
