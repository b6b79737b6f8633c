# run: opt
# layout: B[i, j] at [i // 8, i % 8, j ^ i % 8], padding 0
# The padding of what is written: it gets its value where the inverse leads beyond the shape.
@T.prim_func
def main(A: T.Buffer((11, 6), "float32"), B: T.Buffer((11, 6), "float32")):
    for i, j in T.grid(11, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "B", lambda i, j: [i // 8, i % 8, j ^ (i % 8)], pad_value=0.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((11, 6), "float32"), B: T.Buffer((2, 8, 8), "float32")):
        for i_0, i_1, i_j in T.grid(2, 8, 8):
            with T.block("B"):
                v_i_0, v_i_1, v_i_j = T.axis.remap("SSS", [i_0, i_1, i_j])
                B[v_i_0, v_i_1, v_i_j] = T.if_then_else(v_i_0 == 1 and v_i_1 >= 3 or T.bitwise_xor(v_i_1, v_i_j) >= 6, T.float32(0.0), A[v_i_1 + v_i_0 * 8, T.bitwise_xor(v_i_1, v_i_j)] * T.float32(2.0))
