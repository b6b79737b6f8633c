# run: run --open --dim n=9
# As many elements as data say: the size is known once it is counted.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def double(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * 2

    @T.prim_func
    def count(a: T.handle, B: T.Buffer((1,), "int64")):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("count"):
            B[0] = T.int64(0)
            for i in range(n):
                if A[i] > 0:
                    B[0] = B[0] + T.int64(1)

    @T.prim_func
    def pick(a: T.handle, b: T.handle):
        n = T.int64()
        k = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (k,), "int32")
        with T.block("pick"):
            next = T.alloc_buffer((1,), "int32")
            next[0] = 0
            for i in range(n):
                if A[i] > 0:
                    B[next[0]] = A[i]
                    next[0] = next[0] + 1

    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tensor(("k",), "int32"):
        n = T.int64()
        k = T.int64()
        cls = Module
        c = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), "int64"))
        s = R.match_cast(R.tensor_to_shape(c), R.Shape([k]))
        y = R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((k,), "int32"))
        z = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor((k,), "int32"))
        return z

# ---- expected
# z: int32 [9] 16 10 16 10 8 6 4 10 ...
