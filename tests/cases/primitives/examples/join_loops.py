# run: opt
# Two loops that follow one another are one, which branches: what `loop_partition` does is taken back.
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial((0, 5), i)
            B[vi] = A[vi] + 1.0
    for i in range(3):
        with T.block("C"):
            vi = T.axis.spatial((5, 8), i + 5)
            B[vi] = A[vi] * 2.0

# ---- schedule
i, = sch.get_loops("B")
k, = sch.get_loops("C")
sch.join_loops(i, k)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            if i < 5:
                with T.block("B"):
                    vi = T.axis.spatial(5, i)
                    B[vi] = A[vi] + T.float32(1.0)
            else:
                with T.block("C"):
                    vi = T.axis.spatial((5, 8), i - 5 + 5)
                    B[vi] = A[vi] * T.float32(2.0)
