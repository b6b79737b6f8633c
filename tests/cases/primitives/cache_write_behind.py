# run: opt
# A consumer behind the loop reads what all of its iterations have written.
@T.prim_func
def main(B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    A = T.alloc_buffer((128,), "float32")
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
sch.cache_write("A", 0, "local", consumer_blocks=["C"])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
        A = T.alloc_buffer((128,), "float32")
        A_local = T.alloc_buffer((128,), "float32", scope="local")
        for i in range(8):
            for j in range(16):
                with T.block("A"):
                    vi = T.axis.spatial(128, i * 16 + j)
                    A_local[vi] = T.float32(1.0)
            for ax0 in range(16):
                with T.block("A_local"):
                    v0 = T.axis.spatial(128, i * 16 + ax0)
                    T.reads(A_local[v0])
                    T.writes(A[v0])
                    A[v0] = A_local[v0]
            for j in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(128, i * 16 + j)
                    B[vi] = A[vi] + T.float32(1.0)
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = A_local[vi]
