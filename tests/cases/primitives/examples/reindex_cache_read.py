# run: opt
# The cache has the indices of the block, whatever those of the buffer are.
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 6), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi + 1, vj * 2]

# ---- schedule
sch.reindex_cache_read("B", 0, "local", lambda vi, vj: [vi, vj])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 6), "float32")):
        A_local = T.alloc_buffer((6, 8), "float32", scope="local")
        for i, j in T.grid(6, 8):
            with T.block("A_local"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi + 1, vj * 2])
                T.writes(A_local[vi, vj])
                A_local[vi, vj] = A[vi + 1, vj * 2]
        for i, j in T.grid(6, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A_local[vi, vj]
