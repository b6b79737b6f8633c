# run: verify
# What an optimiser changes inside of branches; all sizes.
@I.ir_module
class Module:
    @T.prim_func
    def twice(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * 2

    @T.prim_func
    def shift(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + 1

    @T.prim_func
    def both(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * 2 + 1

    @T.prim_func
    def positive(a: T.Buffer((), "int32"), B: T.Buffer((), "bool")):
        with T.block("B"):
            B[()] = a[()] > 0

    @R.function
    def main(x: R.Tensor(("n",), "int32"), s: R.Tensor((), "int32")) -> R.Tensor(("n",), "int32"):
        n = T.int64()
        cls = Module
        c = R.call_tir(cls.positive, (s,), out_sinfo=R.Tensor((), "bool"))
        if c:
            u = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((n,), "int32"))
            v = R.call_tir(cls.shift, (u,), out_sinfo=R.Tensor((n,), "int32"))
            y: R.Tensor((n,), "int32") = v
        else:
            w = R.call_tir(cls.shift, (x,), out_sinfo=R.Tensor((n,), "int32"))
            y: R.Tensor((n,), "int32") = w
        return y

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def both(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * 2 + 1

    @T.prim_func
    def shift(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + 1

    @T.prim_func
    def positive(a: T.Buffer((), "int32"), B: T.Buffer((), "bool")):
        with T.block("B"):
            B[()] = a[()] > 0

    @R.function
    def main(x: R.Tensor(("n",), "int32"), s: R.Tensor((), "int32")) -> R.Tensor(("n",), "int32"):
        n = T.int64()
        cls = Module
        c = R.call_tir(cls.positive, (s,), out_sinfo=R.Tensor((), "bool"))
        if c:
            v = R.call_tir(cls.both, (x,), out_sinfo=R.Tensor((n,), "int32"))
            y: R.Tensor((n,), "int32") = v
        else:
            w = R.call_tir(cls.shift, (x,), out_sinfo=R.Tensor((n,), "int32"))
            y: R.Tensor((n,), "int32") = w
        return y

# ---- expected
