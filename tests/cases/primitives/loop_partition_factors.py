# run: opt
# Parts of given extents: one is open, what is left over is a part, and a loop may start anywhere.
@T.prim_func
def main(A: T.Buffer((20, 8), "float32"), B: T.Buffer((20, 8), "float32"), n: T.int32):
    T.assume(n >= 4)
    for i in range(2, 20):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                if vi < 10:
                    B[vi, vj] = A[vi, vj]
                else:
                    B[vi, vj] = 0.0
    for k in range(n):
        with T.block("C"):
            vk = T.axis.spatial(n, k)
            A[0, vk % 8] = 1.0

# ---- schedule
b0 = sch.get_block(name="B")
l1, l2 = sch.get_loops(b0)
l3, l4, l5 = sch.loop_partition(l1, factors=[8, None, 1])
sch.parallel(l4)
l6, l7 = sch.loop_partition(l2, factors=[6])
b1 = sch.get_block(name="C")
l8, = sch.get_loops(b1)
sch.loop_partition(l8, [None, 3])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((20, 8), "float32"), B: T.Buffer((20, 8), "float32"), n: T.int32):
        T.assume(n >= 4)
        for i in range(8):
            for j in range(6):
                with T.block("B"):
                    vi = T.axis.spatial((2, 20), i + 2)
                    vj = T.axis.spatial(8, j)
                    if vi < 10:
                        B[vi, vj] = A[vi, vj]
                    else:
                        B[vi, vj] = T.float32(0.0)
            for j in range(2):
                with T.block("B_3"):
                    vi = T.axis.spatial((2, 20), i + 2)
                    vj = T.axis.spatial(8, j + 6)
                    if vi < 10:
                        B[vi, vj] = A[vi, vj]
                    else:
                        B[vi, vj] = T.float32(0.0)
        for i in T.parallel(9):
            for j in range(8):
                with T.block("B_1"):
                    vi = T.axis.spatial((2, 20), i + 10)
                    vj = T.axis.spatial(8, j)
                    if vi < 10:
                        B[vi, vj] = A[vi, vj]
                    else:
                        B[vi, vj] = T.float32(0.0)
        for i, j in T.grid(1, 8):
            with T.block("B_2"):
                vi = T.axis.spatial((2, 20), i + 19)
                vj = T.axis.spatial(8, j)
                if vi < 10:
                    B[vi, vj] = A[vi, vj]
                else:
                    B[vi, vj] = T.float32(0.0)
        for k in range(n - 3):
            with T.block("C"):
                vk = T.axis.spatial(n, k)
                A[0, vk % 8] = T.float32(1.0)
        for k in range(3):
            with T.block("C_1"):
                vk = T.axis.spatial(n, k + (n - 3))
                A[0, vk % 8] = T.float32(1.0)
