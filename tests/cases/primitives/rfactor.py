# run: opt --print-after-all
@T.prim_func
def main(A: T.Buffer((5, 32), "float32"), C: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 32):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 1.0
            C[vi] = C[vi] + A[vi, vk]

# ---- schedule
b0 = sch.get_block(name="C", func_name="main")
l1, l2 = sch.get_loops(block=b0)
l3, l4 = sch.split(loop=l2, factors=[None, 8])
b5 = sch.rfactor(loop=l4, factor_axis=-1)

# ---- expected
# after b0 = sch.get_block(name="C", func_name="main")
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((5, 32), "float32"), C: T.Buffer((5,), "float32")):
        for i, k in T.grid(5, 32):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(1.0)
                C[vi] = C[vi] + A[vi, vk]
# after l1, l2 = sch.get_loops(block=b0)
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((5, 32), "float32"), C: T.Buffer((5,), "float32")):
        for i, k in T.grid(5, 32):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(1.0)
                C[vi] = C[vi] + A[vi, vk]
# after l3, l4 = sch.split(loop=l2, factors=[None, 8])
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((5, 32), "float32"), C: T.Buffer((5,), "float32")):
        for i, k_0, k_1 in T.grid(5, 4, 8):
            with T.block("C"):
                vi = T.axis.spatial(5, i)
                vk = T.axis.reduce(32, k_0 * 8 + k_1)
                with T.init():
                    C[vi] = T.float32(1.0)
                C[vi] = C[vi] + A[vi, vk]
# after b5 = sch.rfactor(loop=l4, factor_axis=-1)
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((5, 32), "float32"), C: T.Buffer((5,), "float32")):
        C_rf = T.alloc_buffer((5, 8), "float32")
        for i, k_0, k_1 in T.grid(5, 4, 8):
            with T.block("C_rf"):
                vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
                with T.init():
                    C_rf[vi, vk_1] = T.float32(0.0)
                C_rf[vi, vk_1] = C_rf[vi, vk_1] + A[vi, vk_0 * 8 + vk_1]
        for i, k_1 in T.grid(5, 8):
            with T.block("C"):
                vk_1, vi = T.axis.remap("RS", [k_1, i])
                with T.init():
                    C[vi] = T.float32(1.0)
                C[vi] = C[vi] + C_rf[vi, vk_1]
