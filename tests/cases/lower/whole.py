# run: opt --pass lower
# An intermediate buffer becomes a parameter for scratch memory, a vectorised loop a vector.


@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8, 16), "float32")
    for i in T.parallel(8):
        for j in T.vectorized(16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * A[vi, vj]
    for i, k in T.grid(8, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + C[vi, vk]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((128,), "float32")):
        T.func_attr({"tilewright.workspace": 1})
        A_1 = T.decl_buffer((128,), "float32", data=A.data)
        for i in T.parallel(8):
            C[T.Ramp(i * 16, 1, 16)] = A_1[T.Ramp(i * 16, 1, 16)] * A_1[T.Ramp(i * 16, 1, 16)]
        for i, k in T.grid(8, 16):
            if k == 0:
                B[i] = T.float32(0.0)
            B[i] = B[i] + C[i * 16 + k]
