# run: opt
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32")):
    for i, j in T.grid(6, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0

# ---- schedule
block = sch.get_sblock("B")
copy = sch.cache_read(block, 0, None, consumer_blocks=None)
sch.compute_at(copy, "j", index=-2)
sch.split("i", factors=[None, 4], preserve_unit_iters=True, disable_predication=0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32")):
        A_global = T.alloc_buffer((6, 10), "float32")
        for i_0, i_1, j in T.grid(2, 4, 10):
            with T.block("A_global"):
                v0 = T.axis.spatial(6, i_0 * 4 + i_1)
                v1 = T.axis.spatial(10, j)
                T.where(i_0 * 4 + i_1 < 6)
                A_global[v0, v1] = A[v0, v1]
            with T.block("B"):
                vi = T.axis.spatial(6, i_0 * 4 + i_1)
                vj = T.axis.spatial(10, j)
                T.where(i_0 * 4 + i_1 < 6)
                B[vi, vj] = A_global[vi, vj] * T.float32(2.0)
