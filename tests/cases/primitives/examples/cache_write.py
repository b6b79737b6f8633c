# run: opt
# The sums are made in a cache, and copied when they are complete.
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]

# ---- schedule
sch.cache_write("B", 0, "local")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        B_local = T.alloc_buffer((4,), "float32", scope="local")
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B_local[vi] = T.float32(0.0)
                B_local[vi] = B_local[vi] + A[vi, vk]
        for ax0 in range(4):
            with T.block("B_local"):
                v0 = T.axis.spatial(4, ax0)
                T.reads(B_local[v0])
                T.writes(B[v0])
                B[v0] = B_local[v0]
