# run: verify
# A product of the same chain with its operands swapped.
@I.ir_module
class Module:
    @T.prim_func
    def mm(a: T.Buffer((97, 97), "float32"), b: T.Buffer((97, 97), "float32"), y: T.Buffer((97, 97), "float32")):
        for i, j, k in T.grid(97, 97, 97):
            with T.block("b"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]

    @R.function
    def main(x: R.Tensor((97, 97), "float32"), w: R.Tensor((97, 97), "float32")) -> R.Tensor((97, 97), "float32"):
        cls = Module
        with R.dataflow():
            v0 = R.call_tir(cls.mm, (x, w,), out_sinfo=R.Tensor((97, 97), "float32"))
            v1 = R.call_tir(cls.mm, (v0, w,), out_sinfo=R.Tensor((97, 97), "float32"))
            out = R.call_tir(cls.mm, (v1, w,), out_sinfo=R.Tensor((97, 97), "float32"))
            R.output(out)
        return out

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def mm(a: T.Buffer((97, 97), "float32"), b: T.Buffer((97, 97), "float32"), y: T.Buffer((97, 97), "float32")):
        for i, j, k in T.grid(97, 97, 97):
            with T.block("b"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]

    @R.function
    def main(x: R.Tensor((97, 97), "float32"), w: R.Tensor((97, 97), "float32")) -> R.Tensor((97, 97), "float32"):
        cls = Module
        with R.dataflow():
            v0 = R.call_tir(cls.mm, (x, w,), out_sinfo=R.Tensor((97, 97), "float32"))
            v1 = R.call_tir(cls.mm, (v0, w,), out_sinfo=R.Tensor((97, 97), "float32"))
            out = R.call_tir(cls.mm, (w, v1,), out_sinfo=R.Tensor((97, 97), "float32"))
            R.output(out)
        return out

# ---- expected
# exit: 1
# `main` differs in the result[48, 10], on random data when both are run
#   that is -3.011e2 and 3.555e2
