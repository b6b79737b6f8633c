# run: opt
# semantics: not compared, because no memory holds these buffers
# What fits a narrow type is the quotient, and not the number that is divided.
@T.prim_func
def main(A: T.Buffer((2147483647, 255), "int32"), B: T.Buffer((2147483647, 255), "int32")):
    for f in range(T.int64(547608329985)):
        with T.block("B"):
            v0 = T.axis.spatial(2147483647, T.Cast("int32", f // T.int64(255)))
            v1 = T.axis.spatial(255, T.Cast("int32", f % T.int64(255)))
            B[v0, v1] = A[v0, v1] + 1

# ---- schedule
sch.transform_loops(sch.get_loops("B"), lambda f: [f // 3, f % 3])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((2147483647, 255), "int32"), B: T.Buffer((2147483647, 255), "int32")):
        for f_0, f_1 in T.grid(T.int64(182536109995), T.int64(3)):
            with T.block("B"):
                v0 = T.axis.spatial(2147483647, T.Cast("int32", f_0 // T.int64(85)))
                v1 = T.axis.spatial(255, T.Cast("int32", (f_0 * T.int64(3) + f_1) % T.int64(255)))
                B[v0, v1] = A[v0, v1] + 1
