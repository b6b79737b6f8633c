# run: opt --pass remove_no_op
# Empty loops and branches, bindings that nobody reads, memory that nobody touches.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), n: T.int32):
    unused = T.alloc_buffer((16,), "int32")
    for i in range(0):
        A[i] = 1
    for i in range(16):
        double = i * 2
        if i < 8:
            T.evaluate(0)
        else:
            A[i] = 3
        with T.block("nothing"):
            v = T.axis.spatial(16, i)
            T.evaluate(0)
    if n > 3:
        for i in range(n):
            T.evaluate(n)
    assert n < 100, "too many"

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            if not i < 8:
                A[i] = 3
        assert n < 100, "too many"
