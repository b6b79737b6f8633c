# run: opt
# `B` lies in rows of four, and its padding holds zeros, which the block that makes it writes.
@T.prim_func
def main(A: T.Buffer((14,), "float32"), C: T.Buffer((14,), "float32")):
    B = T.alloc_buffer((14,), "float32")
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] + 1.0
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi] * 2.0

# ---- schedule
sch.transform_layout("B", "B", lambda i: [i // 4, i % 4], pad_value=0.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((14,), "float32"), C: T.Buffer((14,), "float32")):
        B = T.alloc_buffer((4, 4), "float32")
        for i_0, i_1 in T.grid(4, 4):
            with T.block("B"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, T.float32(0.0), A[v_i_0 * 4 + v_i_1] + T.float32(1.0))
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi // 4, vi % 4] * T.float32(2.0)
