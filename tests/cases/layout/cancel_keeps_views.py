# run: opt --pass cancel_layout
# A reshape costs nothing, and composed with a transposition it would be a copy. All three together
# are the identity, and go.


@I.ir_module
class Module:
    @T.prim_func
    def flatten(A: T.Buffer((2, 6), "float32"), B: T.Buffer((12,), "float32")):
        for i in range(12):
            B[i] = A[i // 6, i % 6]

    @T.prim_func
    def shape(A: T.Buffer((12,), "float32"), B: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            B[i, j] = A[i * 4 + j]

    @T.prim_func
    def turn(A: T.Buffer((3, 4), "float32"), B: T.Buffer((4, 3), "float32")):
        for i, j in T.grid(4, 3):
            B[i, j] = A[j, i]

    @T.prim_func
    def turn_and_flatten(A: T.Buffer((4, 3), "float32"), B: T.Buffer((2, 6), "float32")):
        for i, j in T.grid(2, 6):
            B[i, j] = A[(i * 6 + j) % 4, (i * 6 + j) // 4]

    @R.function
    def main(x: R.Tensor((2, 6), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.flatten, (x,), out_sinfo=R.Tensor((12,), "float32"))
            b = R.call_tir(cls.shape, (a,), out_sinfo=R.Tensor((3, 4), "float32"))
            c = R.call_tir(cls.turn, (b,), out_sinfo=R.Tensor((4, 3), "float32"))
            d = R.call_tir(cls.turn_and_flatten, (c,), out_sinfo=R.Tensor((2, 6), "float32"))
            e = R.call_tir(cls.flatten, (d,), out_sinfo=R.Tensor((12,), "float32"))
            R.output(c, e)
        return (c, e)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def flatten(A: T.Buffer((2, 6), "float32"), B: T.Buffer((12,), "float32")):
        for i in range(12):
            B[i] = A[i // 6, i % 6]

    @T.prim_func
    def shape(A: T.Buffer((12,), "float32"), B: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            B[i, j] = A[i * 4 + j]

    @T.prim_func
    def turn(A: T.Buffer((3, 4), "float32"), B: T.Buffer((4, 3), "float32")):
        for i, j in T.grid(4, 3):
            B[i, j] = A[j, i]

    @R.function
    def main(x: R.Tensor((2, 6), dtype="float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.flatten, (x,), out_sinfo=R.Tensor((12,), dtype="float32"))
            b = R.call_tir(cls.shape, (a,), out_sinfo=R.Tensor((3, 4), dtype="float32"))
            c = R.call_tir(cls.turn, (b,), out_sinfo=R.Tensor((4, 3), dtype="float32"))
            R.output(c, a)
        return (c, a)
