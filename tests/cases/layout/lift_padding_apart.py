# run: opt --pass lift_layout
# A stage in two statements: the data, and the padding after it. They leave as one. The crop comes
# before the last work, and leaves all the same.


@I.ir_module
class Module:
    @T.prim_func
    def f(
        A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((8,), "float32")
    ):
        P = T.alloc_buffer((8,))
        Q = T.alloc_buffer((8,))
        for i in range(6):
            with T.block("pack"):
                vi = T.axis.spatial(6, i)
                T.block_attr({"preproc": "pad"})
                P[vi + 1] = A[vi]
        for i in range(2):
            with T.block("edges"):
                vi = T.axis.spatial(2, i)
                P[vi * 7] = T.undef(dtype="float32")
        for i in range(8):
            with T.block("negate"):
                vi = T.axis.spatial(8, i)
                Q[vi] = T.float32(0) - P[vi]
        for i in range(6):
            with T.block("crop"):
                vi = T.axis.spatial(6, i)
                T.block_attr({"postproc": "crop"})
                B[vi] = Q[vi + 1]
        for i in range(8):
            with T.block("twice"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.if_then_else(vi < 7 and 0 < vi, Q[vi] + Q[vi], T.float32(0))

    @R.function
    def main(x: R.Tensor((6,), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(
                cls.f, (x,), out_sinfo=[R.Tensor((6,), "float32"), R.Tensor((8,), "float32")]
            )
            a = y[0]
            b = y[1]
            R.output(a, b)
        return (a, b)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((6,), dtype="float32")):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.pack, (x,), out_sinfo=R.Tensor((8,), dtype="float32"))
            y_physical = R.call_tir(cls.f_physical, (x_physical,), out_sinfo=[R.Tensor((8,), dtype="float32"), R.Tensor((8,), dtype="float32")])
            a_physical: R.Tensor((8,), dtype="float32") = y_physical[0]
            a = R.call_tir(cls.crop, (a_physical,), out_sinfo=R.Tensor((6,), dtype="float32"))
            b: R.Tensor((8,), dtype="float32") = y_physical[1]
            R.output(a, b)
        return (a, b)

    @T.prim_func
    def pack(x: T.Buffer((6,), "float32"), y: T.Buffer((8,), "float32")):
        for c0 in range(8):
            with T.block("pack"):
                vc0 = T.axis.spatial(8, c0)
                y[vc0] = T.if_then_else(vc0 < 7 and vc0 >= 1, x[vc0 - 1], T.undef(dtype="float32"))

    @T.prim_func
    def crop(Q: T.Buffer((8,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("crop"):
                vi = T.axis.spatial(6, i)
                B[vi] = Q[vi + 1]

    @T.prim_func
    def f_physical(P: T.Buffer((8,), "float32"), Q: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for c0 in range(8):
            with T.block("P_padding"):
                vc0 = T.axis.spatial(8, c0)
                T.assume(vc0 < 7 and vc0 >= 1 or P[vc0] == T.undef(dtype="float32"))
        for i in range(8):
            with T.block("negate"):
                vi = T.axis.spatial(8, i)
                Q[vi] = T.float32(0.0) - P[vi]
        for i in range(8):
            with T.block("twice"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.if_then_else(vi < 7 and 0 < vi, Q[vi] + Q[vi], T.float32(0.0))
