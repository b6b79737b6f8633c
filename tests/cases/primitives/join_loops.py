# run: opt
# The parts of a loop are one loop again, and its iterations are shared at once. Loops of open extents
# may be joined, too, in any number.
@T.prim_func
def main(A: T.Buffer((20, 8), "float32"), B: T.Buffer((20, 8), "float32"), C: T.Buffer((64,), "float32"), n: T.int32):
    T.assume(n >= 4 and n <= 64)
    for i in range(2, 20):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0
    for k in range(n):
        with T.block("C"):
            vk = T.axis.spatial(n, k)
            C[vk] = A[0, vk % 8]

# ---- schedule
b0 = sch.get_block(name="B")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.loop_partition(l1, factors=[12, None])
l5 = sch.join_loops(l3, l4)
sch.parallel(l5)
b1 = sch.get_block(name="C")
l6, = sch.get_loops(b1)
l7, l8, l9 = sch.loop_partition(l6, [None, 3, 1])
sch.join_loops(l7, l8, l9)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((20, 8), "float32"), B: T.Buffer((20, 8), "float32"), C: T.Buffer((64,), "float32"), n: T.int32):
        T.assume(n >= 4 and n <= 64)
        for i in T.parallel(18):
            if i < 12:
                for j in range(8):
                    with T.block("B"):
                        vi = T.axis.spatial((2, 20), i + 2)
                        vj = T.axis.spatial(8, j)
                        B[vi, vj] = A[vi, vj] + T.float32(1.0)
            else:
                for j in range(8):
                    with T.block("B_1"):
                        vi = T.axis.spatial((2, 20), i - 12 + 14)
                        vj = T.axis.spatial(8, j)
                        B[vi, vj] = A[vi, vj] + T.float32(1.0)
        for k in range(T.max(n - 4, 0) + 3 + 1):
            if k < T.max(n - 4, 0):
                with T.block("C"):
                    vk = T.axis.spatial(n, k)
                    C[vk] = A[0, vk % 8]
            elif k < T.max(n - 4, 0) + 3:
                with T.block("C_1"):
                    vk = T.axis.spatial(n, k - T.max(n - 4, 0) + (n - 4))
                    C[vk] = A[0, vk % 8]
            else:
                with T.block("C_2"):
                    vk = T.axis.spatial(n, 0 + (n - 1))
                    C[vk] = A[0, vk % 8]
