# run: opt --pass fuse
# An intermediate result that is returned stays a result.


@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
        for i in range(3):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                B[vi] = A[vi] * 2

    @T.prim_func
    def increment(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
        for i in range(3):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                B[vi] = A[vi] + 1

    @R.function
    def main(x: R.Tensor((3,), "int32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((3,), "int32"))
            b = R.call_tir(cls.increment, (a,), out_sinfo=R.Tensor((3,), "int32"))
            R.output(a, b)
        return (a, b)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
        for i in range(3):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                B[vi] = A[vi] * 2

    @T.prim_func
    def increment(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
        for i in range(3):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                B[vi] = A[vi] + 1

    @R.function
    def main(x: R.Tensor((3,), dtype="int32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((3,), dtype="int32"))
            b = R.call_tir(cls.increment, (a,), out_sinfo=R.Tensor((3,), dtype="int32"))
            R.output(a, b)
        return (a, b)
