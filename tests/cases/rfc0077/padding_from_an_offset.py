# run: opt
# layout: B[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# "Padded Transformations": an offset puts it at the start.
@T.prim_func
def main(B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = T.Cast("float32", vi)

# ---- schedule
sched[B].transform_layout('B', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(B: T.Buffer((2, 8), "float32")):
        for i_0, i_1 in T.grid(2, 8):
            with T.block("B"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 0 and v_i_1 < 2, T.float32(0.0), T.Cast("float32", v_i_0 * 8 + v_i_1 - 2))
