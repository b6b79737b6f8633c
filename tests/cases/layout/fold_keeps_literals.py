# run: opt --pass fold_constant
# semantics: not compared, because the interpreter does not know `R.zeros`
# A shape, a number or a constant stays where it is an argument; only what is computed gets a binding.


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            z: R.Tensor((4,), "float32") = R.zeros(R.shape([4]), dtype="float32")
            y = R.add(R.reshape(x, R.shape([4])), z)
            R.output(y)
        return y

    @R.function
    def plain() -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            z: R.Tensor((2, 3), "float32") = R.full(R.shape([2, 3]), R.const(1.0, "float32"), dtype="float32")
            R.output(z)
        return z

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        with R.dataflow():
            z: R.Tensor((4,), dtype="float32") = R.zeros(R.shape([4]), dtype="float32")
            R_reshape: R.Opaque("R.reshape") = R.reshape(x, R.shape([4]))
            y: R.Object = R.add(R_reshape, z)
            R.output(y)
        return y

    @R.function
    def plain() -> R.Tensor((2, 3), dtype="float32"):
        with R.dataflow():
            z: R.Tensor((2, 3), dtype="float32") = R.full(R.shape([2, 3]), R.const(1.0, "float32"), dtype="float32")
            R.output(z)
        return z
