# run: run --seed 3
@I.ir_module
class Module:
    @T.prim_func
    def add(A: T.Buffer((2, 3), "int32"), B: T.Buffer((3,), "int32"), C: T.Buffer((2, 3), "int32")):
        for i, j in T.grid(2, 3):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * 10 + B[vj]

    @R.function
    def main(x: R.Tensor((2, 3), "int32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(
                cls.add, (x, R.const([1, 2, 3], "int32")), out_sinfo=R.Tensor((2, 3), "int32")
            )
            R.output(y)
        return (y, x)

# ---- expected
# y: int32 [2, 3] 61 22 23 81 72 83
# x: int32 [2, 3] 6 2 2 8 7 8
