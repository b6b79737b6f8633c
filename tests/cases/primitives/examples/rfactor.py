# run: opt
# Two partial sums a row, which are then combined.
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]

# ---- schedule
i, k = sch.get_loops("B")
ko, ki = sch.split(k, factors=[2, 4])
sch.rfactor(ko, factor_axis=0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        B_rf = T.alloc_buffer((2, 4), "float32")
        for i, k_0, k_1 in T.grid(4, 2, 4):
            with T.block("B_rf"):
                vk_0, vi, vk_1 = T.axis.remap("SSR", [k_0, i, k_1])
                with T.init():
                    B_rf[vk_0, vi] = T.float32(0.0)
                B_rf[vk_0, vi] = B_rf[vk_0, vi] + A[vi, vk_0 * 4 + vk_1]
        for i, k_0 in T.grid(4, 2):
            with T.block("B"):
                vk_0, vi = T.axis.remap("RS", [k_0, i])
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + B_rf[vk_0, vi]
