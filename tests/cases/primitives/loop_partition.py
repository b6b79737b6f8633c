# run: opt
# The guard of a split by a factor that does not divide goes from all but the last part.
@T.prim_func
def main(A: T.Buffer((127,), "float32"), B: T.Buffer((127,), "float32")):
    for i in range(127):
        with T.block("B"):
            v = T.axis.spatial(127, i)
            B[v] = A[v] + 1.0

# ---- schedule
b0 = sch.get_block(name="B")
l1, = sch.get_loops(b0)
l2, l3 = sch.split(l1, factors=[None, 32])
l4, l5 = sch.loop_partition(loop=l2)
sch.parallel(l4)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((127,), "float32"), B: T.Buffer((127,), "float32")):
        for i_0 in T.parallel(3):
            for i_1 in range(32):
                with T.block("B"):
                    v = T.axis.spatial(127, i_0 * 32 + i_1)
                    B[v] = A[v] + T.float32(1.0)
        for i_0, i_1 in T.grid(1, 32):
            with T.block("B_1"):
                v = T.axis.spatial(127, (i_0 + 3) * 32 + i_1)
                T.where((i_0 + 3) * 32 + i_1 < 127)
                B[v] = A[v] + T.float32(1.0)
