# run: opt
# What an iteration reads of blocks of 16 is one block: `i * 16 + j` does not wrap for any `i` of the loop around.
@T.prim_func
def main(B: T.Buffer((120,), "float32")):
    A = T.alloc_buffer((8, 16), "float32", scope="local")
    for i in range(8):
        for j in range(16):
            with T.block("A"):
                vi = T.axis.spatial(120, i * 16 + j)
                T.where(i * 16 + j < 120)
                A[vi // 16, vi % 16] = 1.0
        for j in range(16):
            with T.block("B"):
                vi = T.axis.spatial(120, i * 16 + j)
                T.where(i * 16 + j < 120)
                B[vi] = A[vi // 16, vi % 16] + 1.0

# ---- schedule
sch.cache_read("B", 0, storage_scope="local")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(B: T.Buffer((120,), "float32")):
        A = T.alloc_buffer((8, 16), "float32", scope="local")
        A_local = T.alloc_buffer((8, 16), "float32", scope="local")
        for i in range(8):
            for j in range(16):
                with T.block("A"):
                    vi = T.axis.spatial(120, i * 16 + j)
                    T.where(i * 16 + j < 120)
                    A[vi // 16, vi % 16] = T.float32(1.0)
            for ax0, ax1 in T.grid(1, 16):
                with T.block("A_local"):
                    v0 = T.axis.spatial(8, i + ax0)
                    v1 = T.axis.spatial(16, ax1)
                    T.reads(A[v0, v1])
                    T.writes(A_local[v0, v1])
                    A_local[v0, v1] = A[v0, v1]
            for j in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(120, i * 16 + j)
                    T.where(i * 16 + j < 120)
                    B[vi] = A_local[vi // 16, vi % 16] + T.float32(1.0)
