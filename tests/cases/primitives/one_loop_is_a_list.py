# run: opt
# A list of one loop is a list.


@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v] + 1.0

# ---- schedule
b = sch.get_block("B")
loops = sch.get_loops(b)
parts = sch.split(loops[-1], factors=[None, 4])
sch.vectorize(parts[-1])
sch.parallel(sch.get_loops(b)[0])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i_0 in T.parallel(4):
            for i_1 in T.vectorized(4):
                with T.block("B"):
                    v = T.axis.spatial(16, i_0 * 4 + i_1)
                    B[v] = A[v] + T.float32(1.0)
