# run: verify
# One size is found twice, and used as one.
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
    def pick(a: T.handle, b: T.handle):
        n = T.int64()
        k = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (k,), "int32")
        with T.block("pick"):
            next = T.alloc_buffer((1,), "int32")
            next[0] = 0
            for i in range(n):
                if A[i] > 0:
                    B[next[0]] = A[i]
                    next[0] = next[0] + 1

    @T.prim_func
    def add(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        C = T.match_buffer(c, (n,), "int32")
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + B[vi]

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("k",), "int32"):
        n = T.int64()
        k = T.int64()
        m = T.int64()
        cls = Module
        c = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), "int64"))
        c_sizes = R.match_cast(R.tensor_to_shape(c), R.Shape([k]))
        p = R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((k,), "int32"))
        d = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), "int64"))
        d_sizes = R.match_cast(R.tensor_to_shape(d), R.Shape([m]))
        q0 = R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((m,), "int32"))
        q = R.match_cast(q0, R.Tensor((k,), "int32"))
        z = R.call_tir(cls.add, (p, q), out_sinfo=R.Tensor((k,), "int32"))
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
    def pick(a: T.handle, b: T.handle):
        n = T.int64()
        k = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (k,), "int32")
        with T.block("pick"):
            next = T.alloc_buffer((1,), "int32")
            next[0] = 0
            for i in range(n):
                if A[i] > 0:
                    B[next[0]] = A[i]
                    next[0] = next[0] + 1

    @T.prim_func
    def twice(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + A[vi]

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("k",), "int32"):
        n = T.int64()
        k = T.int64()
        m = T.int64()
        cls = Module
        c = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), "int64"))
        c_sizes = R.match_cast(R.tensor_to_shape(c), R.Shape([k]))
        p = R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((k,), "int32"))
        z = R.call_tir(cls.twice, (p,), out_sinfo=R.Tensor((k,), "int32"))
        return z

# ---- expected
