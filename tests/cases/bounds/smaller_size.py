# run: opt --pass lower
# The smaller one of two sizes is no larger than either: no index needs an assertion.
@T.prim_func
def cut(x_handle: T.handle, y_handle: T.handle):
    n = T.int32()
    m = T.int32()
    x = T.match_buffer(x_handle, (n, m), "float32")
    y = T.match_buffer(y_handle, (T.min(1000, n) - 1, T.min(m, n)), "float32")
    for i, j in T.grid(T.min(1000, n) - 1, T.min(m, n)):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi + 1, vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def cut(x_handle: T.handle, y_handle: T.handle):
        n = T.int32()
        m = T.int32()
        x = T.match_buffer(x_handle, (n, m), "float32")
        y = T.match_buffer(y_handle, (T.min(1000, n) - 1, T.min(m, n)), "float32")
        size: T.int32 = T.min(1000, n) - 1
        size_1: T.int32 = T.min(m, n)
        size_2: T.int64 = T.Cast("int64", T.min(m, n))
        x_1 = T.decl_buffer((n * m,), "float32", data=x.data)
        y_1 = T.decl_buffer(((T.min(1000, n) - 1) * T.min(m, n),), "float32", data=y.data)
        for i, j in T.grid(size, size_1):
            y_1[T.Cast("int64", i) * size_2 + T.Cast("int64", j)] = x_1[T.Cast("int64", i + 1) * T.Cast("int64", m) + T.Cast("int64", j)]
