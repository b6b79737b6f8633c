# run: opt --pass lift_layout
# One argument in two layouts, one of which is read as it is too; two results of which one is
# converted; a scalar of the caller. Equal stages are one function and one call.


@I.ir_module
class Module:
    @T.prim_func
    def work(
        A: T.Buffer((4, 6), "float32"),
        B: T.Buffer((6, 4), "float32"),
        C: T.Buffer((4, 6), "float32"),
        n: T.int32,
    ):
        AT = T.alloc_buffer((6, 4))
        BT = T.alloc_buffer((6, 4))
        for i, j in T.grid(6, 4):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"preproc": "layout"})
                AT[vi, vj] = A[vj, vi]
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = AT[vi, vj] + T.Cast("float32", n)
        for i, j in T.grid(6, 4):
            with T.block("more"):
                vi, vj = T.axis.remap("SS", [i, j])
                BT[vi, vj] = AT[vi, vj] * A[0, 0]
        for i, j in T.grid(4, 6):
            with T.block("turn_back"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"postproc": "layout"})
                C[vi, vj] = BT[vj, vi]

    @T.prim_func
    def other(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
        AT = T.alloc_buffer((6, 4))
        for i, j in T.grid(6, 4):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                AT[vi, vj] = A[vj, vi]
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(AT[vi, vj])

    @R.function
    def main(x: R.Tensor((4, 6), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(
                cls.work,
                (x,),
                out_sinfo=[R.Tensor((6, 4), "float32"), R.Tensor((4, 6), "float32")],
                tir_vars=R.shape([3]),
            )
            a = y[0]
            b = y[1]
            c = R.call_tir(cls.other, (x,), out_sinfo=R.Tensor((6, 4), "float32"))
            R.output(a, b, c)
        return (a, b, c)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 6), dtype="float32")):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.turn, (x,), out_sinfo=R.Tensor((6, 4), dtype="float32"))
            y_physical = R.call_tir(cls.work_physical, (x_physical, x), out_sinfo=[R.Tensor((6, 4), dtype="float32"), R.Tensor((6, 4), dtype="float32")])
            a: R.Tensor((6, 4), dtype="float32") = y_physical[0]
            b_physical: R.Tensor((6, 4), dtype="float32") = y_physical[1]
            b = R.call_tir(cls.turn_back, (b_physical,), out_sinfo=R.Tensor((4, 6), dtype="float32"))
            c = R.call_tir(cls.other_physical, (x_physical,), out_sinfo=R.Tensor((6, 4), dtype="float32"))
            R.output(a, b, c)
        return (a, b, c)

    @T.prim_func
    def turn(A: T.Buffer((4, 6), "float32"), AT: T.Buffer((6, 4), "float32")):
        for i, j in T.grid(6, 4):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                AT[vi, vj] = A[vj, vi]

    @T.prim_func
    def turn_back(BT: T.Buffer((6, 4), "float32"), C: T.Buffer((4, 6), "float32")):
        for i, j in T.grid(4, 6):
            with T.block("turn_back"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = BT[vj, vi]

    @T.prim_func
    def work_physical(AT: T.Buffer((6, 4), "float32"), A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32"), BT: T.Buffer((6, 4), "float32")):
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = AT[vi, vj] + T.Cast("float32", 3)
        for i, j in T.grid(6, 4):
            with T.block("more"):
                vi, vj = T.axis.remap("SS", [i, j])
                BT[vi, vj] = AT[vi, vj] * A[0, 0]

    @T.prim_func
    def other_physical(AT: T.Buffer((6, 4), "float32"), B: T.Buffer((6, 4), "float32")):
        for i, j in T.grid(6, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(AT[vi, vj])
