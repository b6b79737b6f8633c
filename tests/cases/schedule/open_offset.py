# run: opt --pass schedule_stages
# An access that is moved by an open size keeps it.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, x1: T.Buffer((1,), "int64"), c: T.handle):
        n = T.int32()
        x0 = T.match_buffer(a, (n,), "int64")
        concat = T.match_buffer(c, (n + 1,), "int64")
        for i0 in range(n):
            with T.block("concat"):
                vi0 = T.axis.spatial(n, i0)
                concat[vi0] = x0[vi0]
        for i0 in range(1):
            with T.block("concat_1"):
                vi0 = T.axis.spatial(1, i0)
                concat[vi0 + n] = x1[vi0]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, x1: T.Buffer((1,), "int64"), c: T.handle):
        n = T.int32()
        x0 = T.match_buffer(a, (n,), "int64")
        concat = T.match_buffer(c, (n + 1,), "int64")
        for i0 in range(n):
            with T.block("concat"):
                vi0 = T.axis.spatial(n, i0)
                concat[vi0] = x0[vi0]
        for i0 in range(1):
            with T.block("concat_1"):
                vi0 = T.axis.spatial(1, i0)
                concat[vi0 + n] = x1[vi0]
