# run: opt
# Where nothing is summed nothing is written, and the padding must be: a nest of its own does it.
# sizes: n=3
@T.prim_func
def main(a: T.handle, C: T.Buffer((14,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (14, n), "int32")
    B = T.alloc_buffer((14,), "int32")
    for i, k in T.grid(14, n):
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
sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=7)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, C: T.Buffer((14,), "int32")):
        n = T.int32()
        A = T.match_buffer(a, (14, n), "int32")
        B = T.alloc_buffer((4, 4), "int32")
        for i, k in T.grid(14, n):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi // 4, vi % 4] = 0
                B[vi // 4, vi % 4] = B[vi // 4, vi % 4] + A[vi, vk]
        for i_0, i_1 in T.grid(4, 4):
            with T.block("buffer_B_padding"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.where(i_0 == 3 and i_1 >= 2)
                B[v_i_0, v_i_1] = 7
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi // 4, vi % 4]
