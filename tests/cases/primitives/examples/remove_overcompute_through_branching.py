# run: opt
# The sums of what is added to no use are guarded.
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    for io, ii in T.grid(4, 4):
        with T.block("B"):
            vo, vi = T.axis.remap("SR", [io, ii])
            with T.init():
                B[vo] = 0.0
            B[vo] = B[vo] + T.if_then_else(4 * vo + vi < 14, A[vo, vi], 0.0)

# ---- schedule
sch.remove_overcompute_through_branching("B")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
        for io, ii in T.grid(4, 4):
            with T.block("B"):
                vo, vi = T.axis.remap("SR", [io, ii])
                T.where(io < 3 or ii < 2)
                with T.init():
                    B[vo] = T.float32(0.0)
                B[vo] = B[vo] + T.if_then_else(4 * vo + vi < 14, A[vo, vi], T.float32(0.0))
