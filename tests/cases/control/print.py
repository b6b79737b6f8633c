# run: opt
# Branches and loops in each other, as they are printed.
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

    @T.prim_func
    def large(a: T.handle, B: T.Buffer((), "bool")):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("B"):
            B[()] = A[0] > 20

    @R.function
    def main(x: R.Tensor(("n",), "int32")):
        n = T.int64()
        m = T.int64()
        cls = Module
        c = R.call_tir(cls.large, (x,), out_sinfo=R.Tensor((), "bool"))
        if c:
            @R.function
            def body(i: R.Tensor((), "int64"), h: R.Tensor((n,), "int32")):
                d = R.call_tir(cls.large, (h,), out_sinfo=R.Tensor((), "bool"))
                if d:
                    g = x
                else:
                    with R.dataflow():
                        e = R.call_tir(cls.double, (h,), out_sinfo=R.Tensor((n,), "int32"))
                        R.output(e)
                    g = e
                return (d, g)
            r: R.Tuple(R.Tensor((n,), "int32")) = R.loop(body, None, c, (x,))
            y = r[0]
        else:
            f = R.list.of(x, x)
            h = R.list.at(f, R.const(1, "int64"))
            y: R.Tensor((m,), "int32") = h
        return y

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


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

    @T.prim_func
    def large(a: T.handle, B: T.Buffer((), "bool")):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("B"):
            B[()] = A[0] > 20

    @R.function
    def main(x: R.Tensor(("n",), dtype="int32")):
        n = T.int64()
        y_0 = T.int64()
        cls = Module
        c = R.call_tir(cls.large, (x,), out_sinfo=R.Tensor((), dtype="bool"))
        if c:
            @R.function
            def body(i: R.Tensor((), dtype="int64"), h: R.Tensor((n,), dtype="int32")):
                d = R.call_tir(cls.large, (h,), out_sinfo=R.Tensor((), dtype="bool"))
                if d:
                    g: R.Tensor((n,), dtype="int32") = x
                else:
                    with R.dataflow():
                        e = R.call_tir(cls.double, (h,), out_sinfo=R.Tensor((n,), dtype="int32"))
                        R.output(e)
                    g: R.Tensor((n,), dtype="int32") = e
                return (d, g)
            r: R.Tuple(R.Tensor((n,), dtype="int32")) = R.loop(body, None, c, (x,))
            y: R.Tensor((y_0,), dtype="int32") = r[0]
        else:
            f: R.Object = R.list.of(x, x)
            h: R.Object = R.list.at(f, R.const(1, "int64"))
            y: R.Tensor((y_0,), dtype="int32") = h
        return y
