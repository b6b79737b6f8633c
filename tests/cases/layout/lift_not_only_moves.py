# run: opt --pass lift_layout --explain
# Stages that are marked and stay: one computes, one is read before it is done, one converts what is
# no argument. Calls of functions without stages stay as they are.


@I.ir_module
class Module:
    @T.prim_func
    def computes(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
        AT = T.alloc_buffer((6, 4))
        for i, j in T.grid(6, 4):
        #^^^^^^^^^^^^^^^^^^^^^^^ remark: the stage `turn` stays in `computes`
        # note: it does more than move data, or that is not proven
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "layout"})
                AT[vi, vj] = A[vj, vi] * 2.0
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = AT[vi, vj]

    @T.prim_func
    def inner(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
        A2 = T.alloc_buffer((4, 6))
        AT = T.alloc_buffer((6, 4))
        for i, j in T.grid(4, 6):
            with T.block("twice"):
                vi, vj = T.axis.remap("SS", [i, j])
                A2[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(6, 4):
        #^^^^^^^^^^^^^^^^^^^^^^^ remark: the stage `turn` stays in `inner`
        # note: `A2` is no parameter
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "layout"})
                AT[vi, vj] = A2[vj, vi]
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = AT[vi, vj]

    @T.prim_func
    def overwritten(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
        AT = T.alloc_buffer((6, 4))
        for i, j in T.grid(6, 4):
        #^^^^^^^^^^^^^^^^^^^^^^^ remark: the stage `turn` stays in `overwritten`
        # note: `AT` is written by another statement too
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "layout"})
                AT[vi, vj] = A[vj, vi]
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                AT[vi, vj] = AT[vi, vj] * 3.0
        for i, j in T.grid(6, 4):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = AT[vi, vj]

    @R.function
    def main(x: R.Tensor((4, 6), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.computes, (x,), out_sinfo=R.Tensor((6, 4), "float32"))
            b = R.call_tir(cls.inner, (x,), out_sinfo=R.Tensor((6, 4), "float32"))
            c = R.call_tir(cls.overwritten, (x,), out_sinfo=R.Tensor((6, 4), "float32"))
            R.output(a, b, c)
        return (a, b, c)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def computes(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
        AT = T.alloc_buffer((6, 4), "float32")
        for i, j in T.grid(6, 4):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "layout"})
                AT[vi, vj] = A[vj, vi] * T.float32(2.0)
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = AT[vi, vj]

    @T.prim_func
    def inner(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
        A2 = T.alloc_buffer((4, 6), "float32")
        AT = T.alloc_buffer((6, 4), "float32")
        for i, j in T.grid(4, 6):
            with T.block("twice"):
                vi, vj = T.axis.remap("SS", [i, j])
                A2[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(6, 4):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "layout"})
                AT[vi, vj] = A2[vj, vi]
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = AT[vi, vj]

    @T.prim_func
    def overwritten(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
        AT = T.alloc_buffer((6, 4), "float32")
        for i, j in T.grid(6, 4):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "layout"})
                AT[vi, vj] = A[vj, vi]
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                AT[vi, vj] = AT[vi, vj] * T.float32(3.0)
        for i, j in T.grid(6, 4):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = AT[vi, vj]

    @R.function
    def main(x: R.Tensor((4, 6), dtype="float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.computes, (x,), out_sinfo=R.Tensor((6, 4), dtype="float32"))
            b = R.call_tir(cls.inner, (x,), out_sinfo=R.Tensor((6, 4), dtype="float32"))
            c = R.call_tir(cls.overwritten, (x,), out_sinfo=R.Tensor((6, 4), dtype="float32"))
            R.output(a, b, c)
        return (a, b, c)
