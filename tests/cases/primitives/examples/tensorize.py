# run: opt
# Four products and their sum become one call of an instruction: what it computes is `dot_desc`, and
# `dot_impl` is the code for it.
@I.ir_module
class Module:
    @T.prim_func
    def dot_desc(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
        for k in range(4):
            with T.block("dot"):
                vk = T.axis.reduce(4, k)
                C[0] = C[0] + A[vk] * B[vk]

    @T.prim_func
    def dot_impl(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
        for k in T.unroll(4):
            C[0] = C[0] + A[k] * B[k]

    @T.prim_func
    def main(X: T.Buffer((6, 8), "float32"), Y: T.Buffer((6, 8), "float32"), Z: T.Buffer((6,), "float32")):
        for i, ko, ki in T.grid(6, 2, 4):
            with T.block("Z"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(8, ko * 4 + ki)
                Z[vi] = Z[vi] + X[vi, vk] * Y[vi, vk]

# ---- schedule
i, ko, ki = sch.get_loops("Z")
sch.tensorize(ki, "dot")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def dot_desc(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
        for k in range(4):
            with T.block("dot"):
                vk = T.axis.reduce(4, k)
                C[0] = C[0] + A[vk] * B[vk]

    @T.prim_func
    def dot_impl(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
        for k in T.unroll(4):
            C[0] = C[0] + A[k] * B[k]

    @T.prim_func
    def main(X: T.Buffer((6, 8), "float32"), Y: T.Buffer((6, 8), "float32"), Z: T.Buffer((6,), "float32")):
        for i, ko in T.grid(6, 2):
            with T.block("Z_o"):
                vi, vko = T.axis.remap("SR", [i, ko])
                T.reads(Z[vi], X[vi, vko * 4:vko * 4 + 4], Y[vi, vko * 4:vko * 4 + 4])
                T.writes(Z[vi])
                A = T.match_buffer(X[vi, vko * 4:vko * 4 + 4], (4,), "float32")
                B = T.match_buffer(Y[vi, vko * 4:vko * 4 + 4], (4,), "float32")
                C = T.match_buffer(Z[vi], (1,), "float32")
                for k in T.unroll(4):
                    C[0] = C[0] + A[k] * B[k]
