# run: run --open --dim n=1 --seed 3
# Sizes that are computed may be zero: what computes nothing is left out, and what joins nothing with something is
# right for it.
@I.ir_module
class Module:
    @T.prim_func
    def products(x: T.handle, s: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n, 4), "float32")
        S = T.match_buffer(s, (n - 1,), "float32")
        for i, k in T.grid(n - 1, 4):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + X[vi, vk] * X[vi + 1, vk]

    @T.prim_func
    def join(s: T.handle, x: T.handle, y: T.handle):
        n = T.int64()
        S = T.match_buffer(s, (n - 1,), "float32")
        X = T.match_buffer(x, (n, 4), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            with T.block("Y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = T.if_then_else(vi < n - 1, S[vi], X[vi, 0])

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        with R.dataflow():
            s = R.call_tir(Module.products, (x,), out_sinfo=R.Tensor((n - 1,), "float32"))
            y = R.call_tir(Module.join, (s, x), out_sinfo=R.Tensor((n,), "float32"))
            R.output(y)
        return y

# ---- expected
# y: float32 [1] -0.7731
