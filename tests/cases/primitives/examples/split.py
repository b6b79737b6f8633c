# run: opt
# A loop of 8 iterations becomes two and four; where the factors do not divide, a predicate is added.
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0

# ---- schedule
i, j = sch.get_loops("B")
sch.split(j, factors=[None, 4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        for i, j_0, j_1 in T.grid(6, 2, 4):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.spatial(8, j_0 * 4 + j_1)
                B[vi, vj] = A[vi, vj] + T.float32(1.0)
