# run: run --open --dim n=5
# A list holds tensors of any length; what is taken out of it is cast.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def double(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * 2

    @R.function
    def main(x: R.Tensor(("n",), "int32")):
        n = T.int64()
        m = T.int64()
        k = T.int64()
        cls = Module
        d = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "int32"))
        s = R.list.split(x, R.const(2, "int64"), axis=0)
        t = R.list.insert(s, d, R.const(0, "int64"))
        u = R.list.erase(t)
        length = R.list.length(u)
        a = R.list.at(u, R.const(-1, "int64"))
        b = R.match_cast(a, R.Tensor((m,), "int32"))
        e = R.call_tir(cls.double, (b,), out_sinfo=R.Tensor((m,), "int32"))
        j = R.list.join(u, axis=0)
        f = R.match_cast(j, R.Tensor((k,), "int32"))
        o = R.optional.nothing()
        has = R.optional.has(o)
        return (length, e, f, has)

# ---- expected
# length: int64 [] 3
# e: int32 [2] 16 10
# f: int32 [9] 16 10 16 10 8 8 5 8 ...
# has: bool [] false
