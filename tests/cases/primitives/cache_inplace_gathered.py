# run: opt
# The copies stand outside of the condition under which `at` is read in range, and the block might
# change what decides: they copy the whole axis.
@T.prim_func
def main(at: T.Buffer((7,), "int32"), B: T.Buffer((4,), "int32")):
    for io, ii in T.grid(4, 2):
        with T.block("B"):
            v = T.axis.reduce(7, io * 2 + ii)
            T.where(io * 2 + ii < 7)
            B[T.max(T.min(at[v], 3), 0)] = B[T.max(T.min(at[v], 3), 0)] + v

# ---- schedule
sch.cache_inplace("B", "B", "local")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(at: T.Buffer((7,), "int32"), B: T.Buffer((4,), "int32")):
        B_local = T.alloc_buffer((4,), "int32", scope="local")
        for io, ii in T.grid(4, 2):
            for ax0 in range(4):
                with T.block("B_local"):
                    v0 = T.axis.spatial(4, ax0)
                    T.reads(B[v0])
                    T.writes(B_local[v0])
                    B_local[v0] = B[v0]
            with T.block("B"):
                v = T.axis.reduce(7, io * 2 + ii)
                T.where(io * 2 + ii < 7)
                B_local[T.max(T.min(at[v], 3), 0)] = B_local[T.max(T.min(at[v], 3), 0)] + v
            for ax0 in range(4):
                with T.block("B_local_1"):
                    v0 = T.axis.spatial(4, ax0)
                    T.reads(B_local[v0])
                    T.writes(B[v0])
                    B[v0] = B_local[v0]
