# run: opt
# The factors of the first loop cover 4,294,967,423 iterations and those of the second 2^32: the
# new loops are of int64, and the guard stays.
# semantics: not compared, because the loops would run for hours.
@T.prim_func
def main(A: T.Buffer((3000000,), "int8"), B: T.Buffer((65536,), "int8")):
    for i in range(3000000):
        with T.block("A"):
            vi = T.axis.spatial(3000000, i)
            A[vi] = T.int8(1)
    for i in range(65536):
        with T.block("B"):
            vi = T.axis.spatial(65536, i)
            B[vi] = T.int8(1)

# ---- schedule
l1, = sch.get_loops("A")
sch.split(l1, factors=[779, 5513437])
l2, = sch.get_loops("B")
sch.split(l2, factors=[65536, 65536])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((3000000,), "int8"), B: T.Buffer((65536,), "int8")):
        for i_0, i_1 in T.grid(T.int64(779), T.int64(5513437)):
            with T.block("A"):
                vi = T.axis.spatial(3000000, T.Cast("int32", i_0 * T.int64(5513437) + i_1))
                T.where(i_0 * T.int64(5513437) + i_1 < T.int64(3000000))
                A[vi] = T.int8(1)
        for i_0, i_1 in T.grid(T.int64(65536), T.int64(65536)):
            with T.block("B"):
                vi = T.axis.spatial(65536, T.Cast("int32", i_0 * T.int64(65536) + i_1))
                T.where(i_0 * T.int64(65536) + i_1 < T.int64(65536))
                B[vi] = T.int8(1)
