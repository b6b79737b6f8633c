# run: opt
# The block and its loops run over tiles.
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1.0

# ---- schedule
sch.transform_block_layout("B", lambda i: [i // 4, i % 4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i_0, i_1 in T.grid(2, 4):
            with T.block("B"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                B[v_i_0 * 4 + v_i_1] = A[v_i_0 * 4 + v_i_1] + T.float32(1.0)
