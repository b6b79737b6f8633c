# run: opt
# 2^32 iterations are counted by int64.
# semantics: not compared, because the loops would run for hours.
@T.prim_func
def main(A: T.Buffer((65536,), "int8")):
    for i, j in T.grid(65536, 65536):
        with T.block("A"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                A[vi] = T.int8(0)
            A[vi] = A[vi] + T.int8(1)

# ---- schedule
i, j = sch.get_loops("A")
sch.fuse(i, j)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((65536,), "int8")):
        for i_j_fused in range(T.int64(4294967296)):
            with T.block("A"):
                vi = T.axis.spatial(65536, T.Cast("int32", i_j_fused // T.int64(65536)))
                vj = T.axis.reduce(65536, T.Cast("int32", i_j_fused % T.int64(65536)))
                with T.init():
                    A[vi] = T.int8(0)
                A[vi] = A[vi] + T.int8(1)
