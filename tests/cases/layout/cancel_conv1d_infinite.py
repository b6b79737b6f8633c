# run: opt --pass cancel_layout --explain
# The filter is an argument and may hold an infinity. Then Y[18:] is NaN, and the pad that makes it
# zero must stay as it is: taking all of Y would bring the NaN into the result.


@I.ir_module
class Module:
    @T.prim_func
    def pad(A: T.Buffer((16,), "float32"), P: T.Buffer((24,), "float32")):
        for i in range(24):
            P[i] = T.if_then_else(2 <= i and i < 18, A[i - 2], T.float32(0))

    @T.prim_func
    def conv1d(
        X: T.Buffer((24,), "float32"), F: T.Buffer((3,), "float32"), Y: T.Buffer((22,), "float32")
    ):
        for i, k in T.grid(22, 3):
            with T.block("conv"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Y[vi] = T.float32(0)
                Y[vi] = Y[vi] + X[vi + vk] * F[vk]

    @T.prim_func
    def crop_18(Y: T.Buffer((22,), "float32"), C: T.Buffer((18,), "float32")):
        for i in range(18):
            C[i] = Y[i]

    @T.prim_func
    def pad_18(C: T.Buffer((18,), "float32"), P: T.Buffer((24,), "float32")):
        for i in range(24):
            P[i] = T.if_then_else(2 <= i and i < 20, C[i - 2], T.float32(0))

    @T.prim_func
    def crop_20(Y: T.Buffer((22,), "float32"), C: T.Buffer((20,), "float32")):
        for i in range(20):
            C[i] = Y[i]

    @R.function
    def main(X: R.Tensor((16,), "float32"), F: R.Tensor((3,), "float32")) -> R.Tensor((20,), "float32"):
        cls = Module
        with R.dataflow():
            X_pad = R.call_tir(cls.pad, (X,), out_sinfo=R.Tensor((24,), "float32"))
            Y = R.call_tir(cls.conv1d, (X_pad, F), out_sinfo=R.Tensor((22,), "float32"))
            Y_crop = R.call_tir(cls.crop_18, (Y,), out_sinfo=R.Tensor((18,), "float32"))
            Y_crop_pad = R.call_tir(cls.pad_18, (Y_crop,), out_sinfo=R.Tensor((24,), "float32"))
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: `Y_crop_pad` does not take all of `Y`
            # note: the cells of `Y` where c0 >= 18 are not known to hold T.float32(0.0): a product with zero: `F` may hold NaN or infinity
            Z = R.call_tir(cls.conv1d, (Y_crop_pad, F), out_sinfo=R.Tensor((22,), "float32"))
            Z_crop = R.call_tir(cls.crop_20, (Z,), out_sinfo=R.Tensor((20,), "float32"))
            R.output(Z_crop)
        return Z_crop

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def pad(A: T.Buffer((16,), "float32"), P: T.Buffer((24,), "float32")):
        for i in range(24):
            P[i] = T.if_then_else(2 <= i and i < 18, A[i - 2], T.float32(0.0))

    @T.prim_func
    def conv1d(X: T.Buffer((24,), "float32"), F: T.Buffer((3,), "float32"), Y: T.Buffer((22,), "float32")):
        for i, k in T.grid(22, 3):
            with T.block("conv"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Y[vi] = T.float32(0.0)
                Y[vi] = Y[vi] + X[vi + vk] * F[vk]

    @T.prim_func
    def crop_20(Y: T.Buffer((22,), "float32"), C: T.Buffer((20,), "float32")):
        for i in range(20):
            C[i] = Y[i]

    @R.function
    def main(X: R.Tensor((16,), dtype="float32"), F: R.Tensor((3,), dtype="float32")) -> R.Tensor((20,), dtype="float32"):
        cls = Module
        with R.dataflow():
            X_pad = R.call_tir(cls.pad, (X,), out_sinfo=R.Tensor((24,), dtype="float32"))
            Y = R.call_tir(cls.conv1d, (X_pad, F), out_sinfo=R.Tensor((22,), dtype="float32"))
            Y_crop_pad = R.call_tir(cls.convert, (Y,), out_sinfo=R.Tensor((24,), dtype="float32"))
            Z = R.call_tir(cls.conv1d, (Y_crop_pad, F), out_sinfo=R.Tensor((22,), dtype="float32"))
            Z_crop = R.call_tir(cls.crop_20, (Z,), out_sinfo=R.Tensor((20,), dtype="float32"))
            R.output(Z_crop)
        return Z_crop

    @T.prim_func
    def convert(x: T.Buffer((22,), "float32"), y: T.Buffer((24,), "float32")):
        for c0 in range(24):
            with T.block("convert"):
                vc0 = T.axis.spatial(24, c0)
                y[vc0] = T.if_then_else(vc0 < 20 and vc0 >= 2, x[vc0 - 2], T.float32(0.0))
