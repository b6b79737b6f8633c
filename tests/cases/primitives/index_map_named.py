# run: opt
# A map may have a name, and be used again.


@T.prim_func
def main(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    B = T.alloc_buffer((16, 8), "float32")
    D = T.alloc_buffer((16, 8), "float32")
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
    for i, j in T.grid(16, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] * 3.0
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = D[vi, vj] * 2.0

# ---- schedule
m = IndexMap.from_func(lambda i, j: [j, i // 4, i % 4])
n = tvm.tir.IndexMap.from_func(lambda i: [i // 4, i % 4], ndim=1)
for name in ["B", "D"]:
    sch.transform_layout(block=name, buffer=("write", 0), index_map=m)
sch.transform_loops(loops=[sch.get_loops("C")[0]], index_map=n)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
        B = T.alloc_buffer((8, 4, 4), "float32")
        D = T.alloc_buffer((8, 4, 4), "float32")
        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi // 4, vi % 4] = A[vi, vj] + T.float32(1.0)
        for i, j in T.grid(16, 8):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vj, vi // 4, vi % 4] = B[vj, vi // 4, vi % 4] * T.float32(3.0)
        for i_0, i_1, j in T.grid(4, 4, 8):
            with T.block("C"):
                vi = T.axis.spatial(16, i_0 * 4 + i_1)
                vj = T.axis.spatial(8, j)
                C[vi, vj] = D[vj, vi // 4, vi % 4] * T.float32(2.0)
