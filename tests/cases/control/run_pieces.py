# run: run --open --dim n=9
# What is compiled of `run_sizes.py`: pieces, and a function that calls them.
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @T.prim_func
    def double(a: T.handle, b: T.handle):
        k = T.int32()
        A = T.match_buffer(a, (k,), "int32")
        B = T.match_buffer(b, (k,), "int32")
        for i in range(T.Cast("int64", k)):
            with T.block("B"):
                vi = T.axis.spatial(T.Cast("int64", k), i)
                B[vi] = A[vi] * 2

    @T.prim_func
    def count(a: T.handle, B: T.Buffer((1,), "int64")):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        with T.block("count"):
            B[0] = T.int64(0)
            for i in range(T.Cast("int64", n)):
                if A[i] > 0:
                    B[0] = B[0] + T.int64(1)

    @T.prim_func
    def pick(a: T.handle, b: T.handle):
        n = T.int32()
        k = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (k,), "int32")
        with T.block("pick"):
            next = T.alloc_buffer((1,), "int32")
            next[0] = 0
            for i in range(T.Cast("int64", n)):
                if A[i] > 0:
                    B[next[0]] = A[i]
                    next[0] = next[0] + 1

    @R.function(private=True)
    def main_0(x: R.Tensor(("n",), dtype="int32")):
        n = T.int64()
        R.func_attr({"output_names": ["c"], "tilewright.piece": 1})
        cls = Module
        with R.dataflow():
            c = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), dtype="int64"))
            R.output(c)
        return c

    @R.function(private=True)
    def main_1(sizes: R.Shape(["k"]), x: R.Tensor(("n",), dtype="int32")):
        k = T.int64()
        n = T.int64()
        R.func_attr({"output_names": ["z"], "tilewright.piece": 1})
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((k,), dtype="int32"))
            z = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor((k,), dtype="int32"))
            R.output(z)
        return z

    @R.function
    def main(x: R.Tensor(("n",), dtype="int32")):
        n = T.int64()
        k = T.int64()
        R.func_attr({"output_names": ["z"]})
        cls = Module
        c: R.Tensor((1,), dtype="int64") = cls.main_0(x)
        s = R.match_cast(R.tensor_to_shape(c), R.Shape([k]))
        z: R.Tensor((k,), dtype="int32") = cls.main_1(R.shape([k]), x)
        return z

# ---- expected
# z: int32 [9] 16 10 16 10 8 6 4 10 ...
