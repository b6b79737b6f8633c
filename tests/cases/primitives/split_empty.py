# run: opt
# sizes: n=0
# A loop over nothing splits into loops over nothing, whatever the factors are.


@T.prim_func
def rows(a: T.handle, C: T.Buffer((3,), "int32"), D: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    for i, k in T.grid(3, n):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
    for j, k in T.grid(3, 0):
        with T.block("D"):
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                D[vj] = 0
            D[vj] = D[vj] + vk

# ---- schedule
i, k = sch.get_loops(sch.get_block("C"))
sch.split(k, factors=[None, 4])
j, l = sch.get_loops(sch.get_block("D"))
sch.split(l, factors=[2, 4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def rows(a: T.handle, C: T.Buffer((3,), "int32"), D: T.Buffer((3,), "int32")):
        n = T.int32()
        A = T.match_buffer(a, (3, n), "int32")
        for i, k_0, k_1 in T.grid(3, (n + 3) // 4, 4):
            with T.block("C"):
                vi = T.axis.spatial(3, i)
                vk = T.axis.reduce(n, k_0 * 4 + k_1)
                T.where(k_0 * 4 + k_1 < n)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]
        for j, k_0, k_1 in T.grid(3, 2, 4):
            with T.block("D"):
                vj = T.axis.spatial(3, j)
                vk = T.axis.reduce(0, k_0 * 4 + k_1)
                T.where(k_0 * 4 + k_1 < 0)
                with T.init():
                    D[vj] = 0
                D[vj] = D[vj] + vk
