# run: opt
# What whole tiles leave over has a loop for each number of rows, without a guard; here it is known to be two.
@T.prim_func
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for io, ii in T.grid(4, 4):
        with T.block("B"):
            T.where(io * 4 + ii < 14)
            vi = T.axis.spatial(14, io * 4 + ii)
            B[vi] = A[vi] + 1.0

# ---- schedule
io, ii = sch.get_loops("B")
whole, rest = sch.loop_partition(io)
sch.loop_versions(rest, 2, [1, 2, 3])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
        for io, ii in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(14, io * 4 + ii)
                B[vi] = A[vi] + T.float32(1.0)
        for io, ii in T.grid(1, 2):
            with T.block("B_1"):
                vi = T.axis.spatial(14, (io + 3) * 4 + ii)
                B[vi] = A[vi] + T.float32(1.0)
