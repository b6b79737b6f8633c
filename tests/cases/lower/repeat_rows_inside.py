# run: opt --pass lower
# sizes: n=7
# The rows of tiles whose loop lies in other memory of the function's own.
@T.prim_func
def f(n: T.int32, a: T.Buffer((n, 16), "float32"), b: T.Buffer((16,), "float32"), c: T.Buffer((n,), "float32"), d: T.Buffer((1,), "float32")):
    total = T.alloc_buffer((1,), "float32", scope="local")
    total[0] = T.float32(0)
    for t in T.serial((n + 3) // 4):
        sums = T.alloc_buffer((4,), "float32", scope="local")
        for r in T.unroll(4):
            if t * 4 + r < n:
                sums[r] = T.float32(0)
        for k in T.serial(16):
            for r in T.unroll(4):
                if t * 4 + r < n:
                    sums[r] = sums[r] + a[t * 4 + r, k] * b[k]
        for r in T.unroll(4):
            if t * 4 + r < n:
                c[t * 4 + r] = sums[r]
        total[0] = total[0] + T.float32(1)
    d[0] = total[0]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(n: T.int32, a_handle: T.handle, b: T.Buffer((16,), "float32"), c_handle: T.handle, d: T.Buffer((1,), "float32"), total: T.Buffer((1,), "float32", scope="local")):
        a = T.match_buffer(a_handle, (n, 16), "float32")
        c = T.match_buffer(c_handle, (n,), "float32")
        T.func_attr({"tilewright.workspace": 1})
        size: T.int32 = (n + 3) // 4
        a_1 = T.decl_buffer((n * 16,), "float32", data=a.data)
        total[0] = T.float32(0.0)
        for t in range(size):
            with T.decl_buffer((4,), "float32", scope="local") as sums:
                for r in T.unroll(4):
                    sums[r] = T.float32(0.0)
                for k in range(16):
                    for r in T.unroll(4):
                        sums[r] = sums[r] + a_1[T.Cast("int64", t * 4 + T.min(r, n - t * 4 - 1)) * T.int64(16) + T.Cast("int64", k)] * b[k]
                for r in T.unroll(4):
                    if t * 4 + r < n:
                        c[t * 4 + r] = sums[r]
            total[0] = total[0] + T.float32(1.0)
        d[0] = total[0]
