# run: verify
# What assertions say does not count.
@I.ir_module
class Module:
    @T.prim_func
    def checked(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                assert A[vi] < 1000, "node 3: too large"
                B[vi] = A[vi]

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
            u = R.call_tir(cls.checked, (x,), out_sinfo=R.Tensor((n,), "int32"))
            y: R.Tensor((n,), "int32") = u
        else:
            w = R.call_tir(cls.shift, (x,), out_sinfo=R.Tensor((n,), "int32"))
            y: R.Tensor((n,), "int32") = w
        return y

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def checked(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                assert A[vi] < 1000, "node 1 is too large"
                B[vi] = A[vi]

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
            u = R.call_tir(cls.checked, (x,), out_sinfo=R.Tensor((n,), "int32"))
            y: R.Tensor((n,), "int32") = u
        else:
            w = R.call_tir(cls.shift, (x,), out_sinfo=R.Tensor((n,), "int32"))
            y: R.Tensor((n,), "int32") = w
        return y

# ---- expected
