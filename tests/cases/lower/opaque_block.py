# run: opt --pass lower_opaque_block
# Blocks and loops of one iteration go, marked loops stay, rows of B are aligned to 8 elements.
@T.prim_func
def f(A: T.Buffer((6, 5), "float32"), C: T.Buffer((6, 5), "float32")):
    for i, u in T.grid(6, 1):
        with T.block(""):
            B = T.alloc_buffer((2, 5), "float32")
            for j in T.serial(5, annotations={"keep": 1}):
                with T.block("B"):
                    T.reads(A[i + u, j])
                    T.writes(B[0, j])
                    T.block_attr({"buffer_dim_align": [[0, 0, 8, 0]]})
                    B[0, j] = A[i + u, j] + T.float32(1.0)
            for j in range(5):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.where(u < 1)
                    C[vi, vj] = B[u, vj] * T.float32(2.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((6, 5), "float32"), C: T.Buffer((6, 5), "float32")):
        for i in range(6):
            B = T.decl_buffer((2, 5), "float32", strides=(8, 1), annotations={"buffer_allocated_addr": [], "buffer_data_alignment": 64})
            for j in T.serial(5, annotations={"keep": 1}):
                B[0, j] = A[i + 0, j] + T.float32(1.0)
            for j in range(5):
                if T.int32(0) < 1:
                    C[i, j] = B[0, j] * T.float32(2.0)
