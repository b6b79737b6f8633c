# run: opt
# One block only. The other one would have to stay, and nobody asked.


@T.prim_func
def func(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32")):
    for ii in range(2, 4):
        T.assume(A[3, ii] == T.undef(dtype="int32"))
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            with T.block("compute"):
                vo, vi = T.axis.remap("SS", [io, ii])
                B[vo, vi] = A[vo, vi] * 2
    for io, ii in T.grid(4, 4):
        with T.block("pad"):
            vo, vi = T.axis.remap("SS", [io, ii])
            T.where(io == 3 and ii >= 2)
            B[vo, vi] = 0
    for io, ii in T.grid(4, 4):
        with T.block("other"):
            vo, vi = T.axis.remap("SS", [io, ii])
            if vo < 3:
                C[vo, vi] = A[vo, vi]

# ---- schedule
sch.remove_branching_through_overcompute(block="compute")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32")):
        for ii in range(2, 4):
            T.assume(A[3, ii] == T.undef(dtype="int32"))
        for io, ii in T.grid(4, 4):
            with T.block("compute"):
                vo, vi = T.axis.remap("SS", [io, ii])
                B[vo, vi] = A[vo, vi] * 2
        for io, ii in T.grid(4, 4):
            with T.block("pad"):
                vo, vi = T.axis.remap("SS", [io, ii])
                T.where(io == 3 and ii >= 2)
                B[vo, vi] = 0
        for io, ii in T.grid(4, 4):
            with T.block("other"):
                vo, vi = T.axis.remap("SS", [io, ii])
                if vo < 3:
                    C[vo, vi] = A[vo, vi]
