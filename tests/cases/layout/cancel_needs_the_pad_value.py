# run: opt --pass cancel_layout --explain
# The product keeps what is padded zero zero: crop and pad undo each other. The sum with one does
# not, and taking it for its padded self would put ones where zeros are summed up.


@I.ir_module
class Module:
    @T.prim_func
    def pad(A: T.Buffer((6,), "float32"), P: T.Buffer((8,), "float32")):
        for i in range(8):
            P[i] = T.if_then_else(i < 6, A[i], T.float32(0))

    @T.prim_func
    def crop(P: T.Buffer((8,), "float32"), A: T.Buffer((6,), "float32")):
        for i in range(6):
            A[i] = P[i]

    @T.prim_func
    def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(2)

    @T.prim_func
    def add_one(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] + T.float32(1)

    @T.prim_func
    def total(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i, k in T.grid(1, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vk]

    @R.function
    def main(x: R.Tensor((6,), "float32")) -> R.Tensor((1,), "float32"):
        cls = Module
        with R.dataflow():
            x0 = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((8,), "float32"))
            y0 = R.call_tir(cls.twice, (x0,), out_sinfo=R.Tensor((8,), "float32"))
            y = R.call_tir(cls.crop, (y0,), out_sinfo=R.Tensor((6,), "float32"))
            y1 = R.call_tir(cls.pad, (y,), out_sinfo=R.Tensor((8,), "float32"))
            z0 = R.call_tir(cls.add_one, (y1,), out_sinfo=R.Tensor((8,), "float32"))
            z = R.call_tir(cls.crop, (z0,), out_sinfo=R.Tensor((6,), "float32"))
            z1 = R.call_tir(cls.pad, (z,), out_sinfo=R.Tensor((8,), "float32"))
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: `z0` is not taken for `z1`
            # note: the cells of `z0` where c0 >= 6 are not known to hold T.float32(0.0): they hold T.float32(1.0)
            s = R.call_tir(cls.total, (z1,), out_sinfo=R.Tensor((1,), "float32"))
            R.output(s)
        return s

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def pad(A: T.Buffer((6,), "float32"), P: T.Buffer((8,), "float32")):
        for i in range(8):
            P[i] = T.if_then_else(i < 6, A[i], T.float32(0.0))

    @T.prim_func
    def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(2.0)

    @T.prim_func
    def add_one(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] + T.float32(1.0)

    @T.prim_func
    def total(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i, k in T.grid(1, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + A[vk]

    @R.function
    def main(x: R.Tensor((6,), dtype="float32")) -> R.Tensor((1,), dtype="float32"):
        cls = Module
        with R.dataflow():
            x0 = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((8,), dtype="float32"))
            y0 = R.call_tir(cls.twice, (x0,), out_sinfo=R.Tensor((8,), dtype="float32"))
            z0 = R.call_tir(cls.add_one, (y0,), out_sinfo=R.Tensor((8,), dtype="float32"))
            z1 = R.call_tir(cls.convert, (z0,), out_sinfo=R.Tensor((8,), dtype="float32"))
            s = R.call_tir(cls.total, (z1,), out_sinfo=R.Tensor((1,), dtype="float32"))
            R.output(s)
        return s

    @T.prim_func
    def convert(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for c0 in range(8):
            with T.block("convert"):
                vc0 = T.axis.spatial(8, c0)
                y[vc0] = T.if_then_else(vc0 < 6, x[vc0], T.float32(0.0))
