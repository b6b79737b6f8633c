# run: verify
# Calls that were fused, of a million elements.
@I.ir_module
class Module:
    @T.prim_func
    def twice(a: T.Buffer((1000, 1000), "float32"), y: T.Buffer((1000, 1000), "float32")):
        for i, j in T.grid(1000, 1000):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vi, vj] * T.float32(2)

    @T.prim_func
    def shift(a: T.Buffer((1000, 1000), "float32"), y: T.Buffer((1000, 1000), "float32")):
        for i, j in T.grid(1000, 1000):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vi, vj] + T.float32(1)

    @T.prim_func
    def relu(a: T.Buffer((1000, 1000), "float32"), y: T.Buffer((1000, 1000), "float32")):
        for i, j in T.grid(1000, 1000):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(a[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((1000, 1000), "float32")) -> R.Tensor((1000, 1000), "float32"):
        cls = Module
        with R.dataflow():
            u = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((1000, 1000), "float32"))
            v = R.call_tir(cls.shift, (u,), out_sinfo=R.Tensor((1000, 1000), "float32"))
            out = R.call_tir(cls.relu, (v,), out_sinfo=R.Tensor((1000, 1000), "float32"))
            R.output(out)
        return out

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def all(a: T.Buffer((1000, 1000), "float32"), y: T.Buffer((1000, 1000), "float32")):
        for i, j in T.grid(1000, 1000):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(a[vi, vj] * T.float32(2) + T.float32(1), T.float32(0))

    @R.function
    def main(x: R.Tensor((1000, 1000), "float32")) -> R.Tensor((1000, 1000), "float32"):
        cls = Module
        with R.dataflow():
            out = R.call_tir(cls.all, (x,), out_sinfo=R.Tensor((1000, 1000), "float32"))
            R.output(out)
        return out

# ---- expected
