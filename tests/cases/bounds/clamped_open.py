# run: opt --pass lower
# An index from data that is brought inside of an open extent is in range where the extent is not zero.
@T.prim_func
def gather(a: T.handle, p: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n,), "float32")
    places = T.match_buffer(p, (m,), "int64")
    B = T.match_buffer(b, (m,), "float32")
    for i in range(m):
        if n >= 1:
            B[i] = A[T.Cast("int32", T.max(T.min(places[i], T.Cast("int64", n) - T.int64(1)), T.int64(0)))]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def gather(a: T.handle, p: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        places = T.match_buffer(p, (m,), "int64")
        B = T.match_buffer(b, (m,), "float32")
        for i in range(m):
            if n >= 1:
                B[i] = A[T.Cast("int32", T.max(T.min(places[i], T.Cast("int64", n) - T.int64(1)), T.int64(0)))]
