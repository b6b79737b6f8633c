# run: opt
# layout: B[i] at [i // 4, i % 4], padding undef
# "Defining Padded Values".
@T.prim_func
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] * 2.0

# ---- schedule
sched[B].transform_layout('B', lambda i: [i//4, i%4], pad_value=lambda io, ii: tir.undef(dtype="float32"))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
        for i in range(14):
            with T.block("B"):
                vi = T.axis.spatial(14, i)
                B[vi // 4, vi % 4] = A[vi] * T.float32(2.0)
        for i_0, i_1 in T.grid(4, 4):
            with T.block("buffer_B_padding"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.where(i_0 == 3 and i_1 >= 2)
                B[v_i_0, v_i_1] = T.undef(dtype="float32")
