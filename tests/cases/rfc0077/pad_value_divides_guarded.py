# run: opt
# The divisor is zero where it is not evaluated.
@T.prim_func
def main(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] + 1
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi]

# ---- schedule
sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=lambda a, b: T.if_then_else(b == 2, 1, 6 // (b - 2)))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for i_0, i_1 in T.grid(4, 4):
            with T.block("B"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, T.if_then_else(v_i_1 == 2, 1, 6 // (v_i_1 - 2)), A[v_i_0 * 4 + v_i_1] + 1)
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi // 4, vi % 4]
