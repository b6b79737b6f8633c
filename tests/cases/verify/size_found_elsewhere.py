# run: verify
# Nothing but a size tells the results apart; it has one name in both.
@I.ir_module
class Module:
    @T.prim_func
    def count(a: T.handle, B: T.Buffer((1,), "int64")):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("count"):
            B[0] = T.int64(0)
            for i in range(n):
                if A[i] > 3:
                    B[0] = B[0] + T.int64(1)

    @T.prim_func
    def numbers(b: T.handle):
        k = T.int64()
        B = T.match_buffer(b, (k,), "int64")
        for i in range(k):
            with T.block("B"):
                vi = T.axis.spatial(k, i)
                B[vi] = vi

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("k",), "int64"):
        k = T.int64()
        cls = Module
        c = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), "int64"))
        s = R.match_cast(R.tensor_to_shape(c), R.Shape([k]))
        z = R.call_tir(cls.numbers, (), out_sinfo=R.Tensor((k,), "int64"))
        return z

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def count(a: T.handle, B: T.Buffer((1,), "int64")):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("count"):
            B[0] = T.int64(0)
            for i in range(n):
                if A[i] > 0:
                    B[0] = B[0] + T.int64(1)

    @T.prim_func
    def numbers(b: T.handle):
        k = T.int64()
        B = T.match_buffer(b, (k,), "int64")
        for i in range(k):
            with T.block("B"):
                vi = T.axis.spatial(k, i)
                B[vi] = vi

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("k",), "int64"):
        k = T.int64()
        cls = Module
        c = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), "int64"))
        s = R.match_cast(R.tensor_to_shape(c), R.Shape([k]))
        z = R.call_tir(cls.numbers, (), out_sinfo=R.Tensor((k,), "int64"))
        return z

# ---- expected
# exit: 1
# `main` differs in the shape of the result, on random data when both are run
#   that is [3] and [5]
