# run: opt
# Each iteration of the loop copies its part; the consumer behind the loop reads all of them.
@T.prim_func
def main(B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    A = T.alloc_buffer((128,), "float32", scope="shared")
    for i in range(8):
        for j in range(16):
            with T.block("A"):
                vi = T.axis.spatial(128, i * 16 + j)
                A[vi] = 1.0
        for j in range(16):
            with T.block("B"):
                vi = T.axis.spatial(128, i * 16 + j)
                B[vi] = A[vi] + 1.0
    for i in range(128):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = A[vi]

# ---- schedule
sch.cache_read("C", 0, consumer_blocks=["C", "B"])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
        A = T.alloc_buffer((128,), "float32", scope="shared")
        A_shared = T.alloc_buffer((128,), "float32", scope="shared")
        for i in range(8):
            for j in range(16):
                with T.block("A"):
                    vi = T.axis.spatial(128, i * 16 + j)
                    A[vi] = T.float32(1.0)
            for ax0 in range(16):
                with T.block("A_shared"):
                    v0 = T.axis.spatial(128, i * 16 + ax0)
                    T.reads(A[v0])
                    T.writes(A_shared[v0])
                    A_shared[v0] = A[v0]
            for j in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(128, i * 16 + j)
                    B[vi] = A_shared[vi] + T.float32(1.0)
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = A_shared[vi]
