# run: compile --target cuda:sm_80 --emit cu --no-cache
# A product that fits one fragment, stored across: loops of one iteration are gone before registers are given to lanes.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((2, 4, 8), "float16"), B: T.Buffer((2, 6, 8), "float16"), M: T.Buffer((6, 4), "bool"), D: T.Buffer((2, 6, 4), "float16")):
        C = T.alloc_buffer((2, 4, 6), "float32")
        for b, i, j, k in T.grid(2, 4, 6, 8):
            with T.block("C"):
                vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
                with T.init():
                    C[vb, vi, vj] = T.float32(0)
                C[vb, vi, vj] = C[vb, vi, vj] + T.Cast("float32", A[vb, vi, vk]) * T.Cast("float32", B[vb, vj, vk])
        for b, j, i in T.grid(2, 6, 4):
            with T.block("D"):
                vb, vj, vi = T.axis.remap("SSS", [b, j, i])
                D[vb, vj, vi] = T.Select(M[vj, vi], T.Cast("float16", C[vb, vi, vj]), T.float16(0))
