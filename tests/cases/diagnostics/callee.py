# run: opt
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        y = R.call_tir(cls.missing, (x,), out_sinfo=R.Tensor((4,), "float32"))
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: function `main`: binding `y`: call_tir of `missing`, which is not defined
        return y
