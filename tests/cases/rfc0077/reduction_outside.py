# run: opt
# The loop of the reduction is outside: each of its iterations writes the padding.
@T.prim_func
def main(A: T.Buffer((14, 8), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for k, i in T.grid(8, 14):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi]

# ---- schedule
sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=lambda a, b: a + b)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((14, 8), "int32"), C: T.Buffer((14,), "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for k, i_0, i_1 in T.grid(8, 4, 4):
            with T.block("B"):
                v_i_0, v_i_1, vk = T.axis.remap("SSR", [i_0, i_1, k])
                with T.init():
                    B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, v_i_0 + v_i_1, 0)
                B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, v_i_0 + v_i_1, B[v_i_0, v_i_1] + A[v_i_0 * 4 + v_i_1, vk])
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi // 4, vi % 4]
