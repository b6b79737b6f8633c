# run: verify
# The opposite condition, and the values exchanged; all sizes.
@I.ir_module
class Module:
    @T.prim_func
    def where(a: T.handle, b: T.handle, m: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        M = T.match_buffer(m, (n,), "bool")
        C = T.match_buffer(c, (n,), "int32")
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = T.Select(not M[vi], A[vi], B[vi])

    @R.function
    def main(x: R.Tensor(("n",), "int32"), y: R.Tensor(("n",), "int32"), m: R.Tensor(("n",), "bool")) -> R.Tensor(("n",), "int32"):
        n = T.int64()
        cls = Module
        z = R.call_tir(cls.where, (x, y, m), out_sinfo=R.Tensor((n,), "int32"))
        return z

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def where(a: T.handle, b: T.handle, m: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        M = T.match_buffer(m, (n,), "bool")
        C = T.match_buffer(c, (n,), "int32")
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = T.Select(M[vi], B[vi], A[vi])

    @R.function
    def main(x: R.Tensor(("n",), "int32"), y: R.Tensor(("n",), "int32"), m: R.Tensor(("n",), "bool")) -> R.Tensor(("n",), "int32"):
        n = T.int64()
        cls = Module
        z = R.call_tir(cls.where, (x, y, m), out_sinfo=R.Tensor((n,), "int32"))
        return z

# ---- expected
