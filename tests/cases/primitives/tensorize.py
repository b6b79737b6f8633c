# run: opt
@I.ir_module
class Module:
    @T.prim_func
    def dot_desc(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 8):
            with T.block("dot"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + A[vi, vk] * B[vk]

    @T.prim_func
    def dot_impl(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
        for i in T.serial(4):
            for k in T.unroll(8):
                C[i] = C[i] + A[i, k] * B[k]

    @T.prim_func
    def main(X: T.Buffer((12, 16), "float32"), Y: T.Buffer((5, 16), "float32"), Z: T.Buffer((5, 12), "float32")):
        for i, j in T.grid(5, 12):
            with T.block("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = 0.0
        for i, jo, ko, ji, ki in T.grid(5, 3, 2, 4, 8):
            with T.block("Z"):
                vi = T.axis.spatial(5, i)
                vj = T.axis.spatial(12, jo * 4 + ji)
                vk = T.axis.reduce(16, ko * 8 + ki)
                Z[vi, vj] = Z[vi, vj] + X[vj, vk] * Y[vi, vk]

# ---- schedule
b0 = sch.get_block(name="Z", func_name="main")
l1, l2, l3, l4, l5 = sch.get_loops(block=b0)
sch.tensorize(block_or_loop=l4, tensor_intrin="dot")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def dot_desc(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 8):
            with T.block("dot"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + A[vi, vk] * B[vk]

    @T.prim_func
    def dot_impl(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            for k in T.unroll(8):
                C[i] = C[i] + A[i, k] * B[k]

    @T.prim_func
    def main(X: T.Buffer((12, 16), "float32"), Y: T.Buffer((5, 16), "float32"), Z: T.Buffer((5, 12), "float32")):
        for i, j in T.grid(5, 12):
            with T.block("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = T.float32(0.0)
        for i, jo, ko in T.grid(5, 3, 2):
            with T.block("Z_o"):
                vi, vjo, vko = T.axis.remap("SSR", [i, jo, ko])
                T.reads(Z[vi, vjo * 4:vjo * 4 + 4], X[vjo * 4:vjo * 4 + 4, vko * 8:vko * 8 + 8], Y[vi, vko * 8:vko * 8 + 8])
                T.writes(Z[vi, vjo * 4:vjo * 4 + 4])
                A = T.match_buffer(X[vjo * 4:vjo * 4 + 4, vko * 8:vko * 8 + 8], (4, 8), "float32")
                B = T.match_buffer(Y[vi, vko * 8:vko * 8 + 8], (8,), "float32")
                C = T.match_buffer(Z[vi, vjo * 4:vjo * 4 + 4], (4,), "float32")
                for i_1 in range(4):
                    for k in T.unroll(8):
                        C[i_1] = C[i_1] + A[i_1, k] * B[k]
