# run: opt
# What is written too much is overwritten before it is read, so the guard can go.
@T.prim_func
def main(A: T.Buffer((4, 4), "float32")):
    with T.block("A"):
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
                A[io, ii] = 1.0
        for io, ii in T.grid(4, 4):
            A[io, ii] = 2.0

# ---- schedule
sch.remove_branching_through_overcompute("A")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32")):
        with T.block("A"):
            for io, ii in T.grid(4, 4):
                A[io, ii] = T.float32(1.0)
            for io, ii in T.grid(4, 4):
                A[io, ii] = T.float32(2.0)
