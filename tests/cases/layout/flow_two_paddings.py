# run: opt --pass flow_layout
# One value, padded in two ways for one call: neither padding may take the place of the other.
@I.ir_module
class Module:
    @T.prim_func
    def f5(A: T.Buffer((4,), "float32"), Z: T.Buffer((3,), "float32")):
        for i0, i1 in T.grid(3, 2):
            with T.block("window"):
                v0 = T.axis.spatial(3, i0)
                v1 = T.axis.reduce(2, i1)
                with T.init():
                    Z[v0] = T.float32(0.0)
                Z[v0] = Z[v0] + A[v0 + v1]

    @T.prim_func
    def f7(A: T.Buffer((3,), "float32"), Z: T.Buffer((4,), "float32")):
        for i0 in range(4):
            with T.block("convert"):
                v0 = T.axis.spatial(4, i0)
                Z[v0] = T.if_then_else(v0 < 3, A[v0], T.float32(-1.0))

    @T.prim_func
    def f9(A: T.Buffer((3,), "float32"), Z: T.Buffer((4,), "float32")):
        for i0 in range(4):
            with T.block("convert"):
                v0 = T.axis.spatial(4, i0)
                Z[v0] = T.if_then_else(v0 < 3, A[v0], T.float32(0.0))

    @T.prim_func
    def add11(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), Z: T.Buffer((4,), "float32")):
        for i0 in range(4):
            with T.block("add"):
                v0 = T.axis.spatial(4, i0)
                Z[v0] = A[v0] * B[v0]

    @R.function
    def main(x1: R.Tensor((4,), "float32")):
        cls = Module
        with R.dataflow():
            t6 = R.call_tir(cls.f5, (x1,), out_sinfo=R.Tensor((3,), "float32"))
            t8 = R.call_tir(cls.f7, (t6,), out_sinfo=R.Tensor((4,), "float32"))
            t10 = R.call_tir(cls.f9, (t6,), out_sinfo=R.Tensor((4,), "float32"))
            t12 = R.call_tir(cls.add11, (t10, t8), out_sinfo=R.Tensor((4,), "float32"))
            R.output(t12)
        return t12

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def add11(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), Z: T.Buffer((4,), "float32")):
        for i0 in range(4):
            with T.block("add"):
                v0 = T.axis.spatial(4, i0)
                Z[v0] = A[v0] * B[v0]

    @R.function
    def main(x1: R.Tensor((4,), dtype="float32")):
        cls = Module
        with R.dataflow():
            t6 = R.call_tir(cls.f5_physical, (x1,), out_sinfo=R.Tensor((4,), dtype="float32"))
            t6_1 = R.call_tir(cls.pad, (t6,), out_sinfo=R.Tensor((4,), dtype="float32"))
            t12 = R.call_tir(cls.add11, (t6, t6_1), out_sinfo=R.Tensor((4,), dtype="float32"))
            R.output(t12)
        return t12

    @T.prim_func
    def f5_physical(A: T.Buffer((4,), "float32"), Z: T.Buffer((4,), "float32")):
        for v0_0, v1 in T.grid(4, 2):
            with T.block("window"):
                v0_0_1, v1_1 = T.axis.remap("SR", [v0_0, v1])
                with T.init():
                    Z[v0_0_1] = T.float32(0.0)
                Z[v0_0_1] = Z[v0_0_1] + T.if_then_else(v0_0_1 < 3, A[v0_0_1 + v1_1], T.float32(0.0))

    @T.prim_func
    def pad(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for c0 in range(4):
            with T.block("pad"):
                vc0 = T.axis.spatial(4, c0)
                y[vc0] = T.if_then_else(vc0 < 3, x[vc0], T.float32(-1.0))
