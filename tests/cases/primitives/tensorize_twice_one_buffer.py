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
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: `tensorize`: `X` would be both `A` and `B` of the description
        # note: trace.py:1 asked for it: sch.tensorize("ji", "dot")
            with T.block("Z"):
                vi = T.axis.spatial(5, i)
                vj = T.axis.spatial(12, jo * 4 + ji)
                vk = T.axis.reduce(16, ko * 8 + ki)
                Z[vi, vj] = Z[vi, vj] + X[vj, vk] * X[vi, vk]

# ---- schedule
sch.tensorize("ji", "dot")
