# run: opt
# 16 iterations are enough for `T.min(n, 16)`, and a guard takes those that are too many.
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "int32")
    for k in range(2):
        for i in range(T.min(n, 16)):
            with T.block("A"):
                vk = T.axis.opaque(2, k)
                vi = T.axis.opaque(n, i)
                A[vi] = vk

# ---- schedule
l0, l1 = sch.get_loops("A")
sch.split(l1, factors=[4, 4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "int32")
        for k, i_0, i_1 in T.grid(2, 4, 4):
            with T.block("A"):
                vk = T.axis.opaque(2, k)
                vi = T.axis.opaque(n, i_0 * 4 + i_1)
                T.where(i_0 * 4 + i_1 < T.min(n, 16))
                A[vi] = vk
