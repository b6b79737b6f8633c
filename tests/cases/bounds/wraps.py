# run: opt --pass lower
# `i * 65536 * 65536` is zero in 32 bits, and code generation takes sums of indices in 64.
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        B[i] = A[i * 65536 * 65536]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((100,), "float32")):
        for i in range(100):
            assert i * 65536 * 65536 >= 0 and i * 65536 * 65536 < 4, ("`A[{}]` is out of range: axis 0 has extent 4", T.Cast("int64", i * 65536 * 65536))
        for i in range(100):
            B[i] = A[T.Let(at, where={at: i * 65536 * 65536})]
