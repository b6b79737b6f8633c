# run: opt
# A map as TVM prints it, with an inverse that follows from it.


@T.prim_func
def main(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    B = T.alloc_buffer((16, 8), "float32")
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * 2.0

# ---- schedule
def apply_trace(sch: tir.Schedule) -> None:
    b0 = sch.get_block(name="B", func_name="main")
    sch.transform_layout(block=b0, buffer=("write", 0), index_map=tvm.tir.IndexMap.from_func(lambda i0, i1: (i1, i0 // 4, i0 % 4,), inverse_index_map=lambda i0, i1, i2: (i1 * 4 + i2, i0,)), pad_value=None, assume_injective_transform=False)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
        B = T.alloc_buffer((8, 4, 4), "float32")
        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi // 4, vi % 4] = A[vi, vj] + T.float32(1.0)
        for i, j in T.grid(16, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj, vi // 4, vi % 4] * T.float32(2.0)
