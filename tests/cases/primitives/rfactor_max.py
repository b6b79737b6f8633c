# run: opt
# Rows of a ragged size, under a condition of their own.
@T.prim_func
def main(A: T.Buffer((5, 4, 3), "float32"), C: T.Buffer((5,), "float32")):
    for io, ii, k, l in T.grid(2, 3, 4, 3):
        with T.block("C"):
            vi = T.axis.spatial(5, io * 3 + ii)
            vk, vl = T.axis.remap("RR", [k, l])
            T.where(io * 3 + ii < 5)
            with T.init():
                C[vi] = A[vi, 0, 0]
            C[vi] = T.max(C[vi], A[vi, vk, vl])

# ---- schedule
sch.rfactor("k", 0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((5, 4, 3), "float32"), C: T.Buffer((5,), "float32")):
        C_rf = T.alloc_buffer((4, 5), "float32")
        for io, ii, k, l in T.grid(2, 3, 4, 3):
            with T.block("C_rf"):
                vk = T.axis.spatial(4, k)
                vi = T.axis.spatial(5, io * 3 + ii)
                vl = T.axis.reduce(3, l)
                T.where(io * 3 + ii < 5)
                with T.init():
                    C_rf[vk, vi] = A[vi, 0, 0]
                C_rf[vk, vi] = T.max(C_rf[vk, vi], A[vi, vk, vl])
        for io, ii, k in T.grid(2, 3, 4):
            with T.block("C"):
                vk = T.axis.reduce(4, k)
                vi = T.axis.spatial(5, io * 3 + ii)
                T.where(io * 3 + ii < 5)
                with T.init():
                    C[vi] = A[vi, 0, 0]
                C[vi] = T.max(C[vi], C_rf[vk, vi])
