# run: opt
# Blocks and loops may be given by their names, by position as well.
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32"), C: T.Buffer((6, 10), "float32")):
    for i, j in T.grid(6, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for k, l in T.grid(6, 10):
        with T.block("C"):
            vk, vl = T.axis.remap("SS", [k, l])
            C[vk, vl] = A[vk, vl] + 1.0

# ---- schedule
sch.reorder("j", "i")
sch.split("l", [None, 5])
sch.parallel(loop="k")
sch.annotate("j", "note", 1)
sch.cache_read("B", 0, "local", ["B", "C"])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32"), C: T.Buffer((6, 10), "float32")):
        A_local = T.alloc_buffer((6, 10), "float32", scope="local")
        for ax0, ax1 in T.grid(6, 10):
            with T.block("A_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(A[v0, v1])
                T.writes(A_local[v0, v1])
                A_local[v0, v1] = A[v0, v1]
        for j in T.serial(10, annotations={"note": 1}):
            for i in range(6):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A_local[vi, vj] * T.float32(2.0)
        for k in T.parallel(6):
            for l_0, l_1 in T.grid(2, 5):
                with T.block("C"):
                    vk = T.axis.spatial(6, k)
                    vl = T.axis.spatial(10, l_0 * 5 + l_1)
                    C[vk, vl] = A_local[vk, vl] + T.float32(1.0)
