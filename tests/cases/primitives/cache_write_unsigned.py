# run: opt
# The box around two writes, where the second one ends before the first: its end minus the other
# is no value of the type of the indices.
@T.prim_func
def main(B: T.Buffer((3, 4), "float32")):
    with T.block("writes"):
        for i, j in T.grid(T.uint8(3), T.uint8(4)):
            B[i, j] = T.float32(1)
        for j in range(T.uint8(4)):
            B[T.uint8(0), j] = T.float32(2)

# ---- schedule
sch.cache_write("writes", "B", "local")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(B: T.Buffer((3, 4), "float32")):
        B_local = T.alloc_buffer((3, 4), "float32", scope="local")
        with T.block("writes"):
            for i, j in T.grid(T.uint8(3), T.uint8(4)):
                B_local[i, j] = T.float32(1.0)
            for j in range(T.uint8(4)):
                B_local[T.uint8(0), j] = T.float32(2.0)
        for ax0, ax1 in T.grid(3, 4):
            with T.block("B_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(B_local[v0, v1])
                T.writes(B[v0, v1])
                B[v0, v1] = B_local[v0, v1]
