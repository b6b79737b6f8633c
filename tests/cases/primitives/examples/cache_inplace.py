# run: opt
# What the block updates is copied into a cache and back.
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + A[vi]

# ---- schedule
sch.cache_inplace("B", 0, "local")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        B_local = T.alloc_buffer((8,), "float32", scope="local")
        for i in range(8):
            for ax0 in range(1):
                with T.block("B_local"):
                    v0 = T.axis.spatial(8, i + ax0)
                    T.reads(B[v0])
                    T.writes(B_local[v0])
                    B_local[v0] = B[v0]
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B_local[vi] = B_local[vi] + A[vi]
            for ax0 in range(1):
                with T.block("B_local_1"):
                    v0 = T.axis.spatial(8, i + ax0)
                    T.reads(B_local[v0])
                    T.writes(B[v0])
                    B[v0] = B_local[v0]
