# run: opt
# A consumer in the loop reads what this and earlier iterations have written.
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + T.if_then_else(vi > 0, B[vi - 1], T.float32(0))
        with T.block("D"):
            vi = T.axis.spatial(16, i)
            D[vi] = B[vi] * 3.0

# ---- schedule
sch.cache_write("B", 0, "local", consumer_blocks=["C"])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):
        B = T.alloc_buffer((16,), "float32")
        B_local = T.alloc_buffer((16,), "float32", scope="local")
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B_local[vi] = A[vi] * T.float32(2.0)
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B_local[vi] + T.if_then_else(vi > 0, B_local[vi - 1], T.float32(0.0))
            for ax0 in range(1):
                with T.block("B_local"):
                    v0 = T.axis.spatial(16, i + ax0)
                    T.reads(B_local[v0])
                    T.writes(B[v0])
                    B[v0] = B_local[v0]
            with T.block("D"):
                vi = T.axis.spatial(16, i)
                D[vi] = B[vi] * T.float32(3.0)
