# run: opt
# Where a partial result has nothing to combine, all of them begin before the others.
@T.prim_func
def main(A: T.Buffer((5, 3), "float32"), C: T.Buffer((5,), "float32")):
    for i, ko, ki in T.grid(5, 1, 4):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            vk = T.axis.reduce(3, ko * 4 + ki)
            T.where(ko * 4 + ki < 3)
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]

# ---- schedule
sch.rfactor("ki", 0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((5, 3), "float32"), C: T.Buffer((5,), "float32")):
        C_rf = T.alloc_buffer((4, 5), "float32")
        for i, ki in T.grid(5, 4):
            with T.block("C_rf_init"):
                vki, vi = T.axis.remap("SS", [ki, i])
                C_rf[vki, vi] = T.float32(0.0)
        for i, ko, ki in T.grid(5, 1, 4):
            with T.block("C_rf"):
                vki, vi, vko = T.axis.remap("SSR", [ki, i, ko])
                T.where(ko * 4 + ki < 3)
                C_rf[vki, vi] = C_rf[vki, vi] + A[vi, vko * 4 + vki]
        for i, ki in T.grid(5, 4):
            with T.block("C"):
                vki, vi = T.axis.remap("RS", [ki, i])
                with T.init():
                    C[vi] = T.float32(0.0)
                C[vi] = C[vi] + C_rf[vki, vi]
