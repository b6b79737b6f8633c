# run: opt --pass lift_layout --pass-config lift_layout.padding=undef --explain
# semantics: not compared, because random data may be out of range for `Q`
# No element of the result comes from the padding, but what it holds says which element of `Q` is
# read: not any value will do.


@I.ir_module
class Module:
    @T.prim_func
    def grow(A: T.Buffer((14,), "int32"), Q: T.Buffer((8,), "int32"), B: T.Buffer((14,), "int32")):
        AC = T.alloc_buffer((4, 4), "int32")
        BC = T.alloc_buffer((4, 4), "int32")
        for io, ii in T.grid(4, 4):
            with T.block("pad"):
                vo, vi = T.axis.remap("SS", [io, ii])
                T.block_attr({"preproc": "pad"})
                AC[vo, vi] = T.if_then_else(4 * vo + vi < 14, A[4 * vo + vi], 0)
        for i, j in T.grid(4, 4):
            with T.block("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                BC[vi, vj] = Q[AC[vi, vj]]
        for i in range(14):
            with T.block("crop"):
                vi = T.axis.spatial(14, i)
                T.block_attr({"postproc": "crop"})
                B[vi] = BC[vi // 4, vi % 4]

    @R.function
    def main(x: R.Tensor((14,), "int32"), q: R.Tensor((8,), "int32")) -> R.Tensor((14,), "int32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.grow, (x, q), out_sinfo=R.Tensor((14,), "int32"))
            R.output(y)
        return y

