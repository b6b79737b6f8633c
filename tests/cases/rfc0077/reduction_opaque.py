# run: opt
# A block without iteration variables, with the initialisation before its loop.
@T.prim_func
def main(A: T.Buffer((14, 8), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for i in range(14):
        B[i] = 0
        for k in range(8):
            with T.block("B"):
                B[i] = B[i] + A[i, k]
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi]

# ---- schedule
sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=7)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((14, 8), "int32"), C: T.Buffer((14,), "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for i_0, i_1 in T.grid(4, 4):
            B[i_0, i_1] = T.if_then_else(i_0 == 3 and i_1 >= 2, 7, 0)
            for k in range(8):
                with T.block("B"):
                    B[i_0, i_1] = T.if_then_else(i_0 == 3 and i_1 >= 2, 7, B[i_0, i_1] + A[i_0 * 4 + i_1, k])
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi // 4, vi % 4]
