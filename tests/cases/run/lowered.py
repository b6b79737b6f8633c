# run: run --seed 1
# A module that was lowered and printed runs as it is: its scratch memory is planned.
@I.ir_module
class Module:
    @T.prim_func
    def f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"), s: T.Buffer((4,), "float32")):
        T.func_attr({"tilewright.workspace": 1})
        for i in range(4):
            s[i] = x[i] * T.float32(2)
        for i in range(4):
            y[i] = s[3 - i] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.call_tir(Module.f, (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y

# ---- expected
# y: float32 [4] 0.77744 2.884 1.9831 1.2662
