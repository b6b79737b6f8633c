# run: verify
# The second loop has one iteration less.
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

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("n",), "int32"):
        n = T.int64()
        cls = Module
        @R.function
        def body(i: R.Tensor((), "int64"), h: R.Tensor((n,), "int32")):
            t = R.call_tir(cls.twice, (h,), out_sinfo=R.Tensor((n,), "int32"))
            u = R.call_tir(cls.shift, (t,), out_sinfo=R.Tensor((n,), "int32"))
            return (R.const(True, "bool"), u)
        r: R.Tuple(R.Tensor((n,), "int32")) = R.loop(body, R.const(3, "int64"), None, (x,))
        y = r[0]
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

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("n",), "int32"):
        n = T.int64()
        cls = Module
        @R.function
        def body(i: R.Tensor((), "int64"), h: R.Tensor((n,), "int32")):
            u = R.call_tir(cls.both, (h,), out_sinfo=R.Tensor((n,), "int32"))
            return (R.const(True, "bool"), u)
        r: R.Tuple(R.Tensor((n,), "int32")) = R.loop(body, R.const(2, "int64"), None, (x,))
        y = r[0]
        return y

# ---- expected
# exit: 1
# `main` at n=1 differs in the result[0]
#   with x[0] = 2, all else = 0: 23 and 11
