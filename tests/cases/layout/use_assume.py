# run: opt --pass lift_layout,use_assume,fuse --explain
# A product over padded rows assumes, once its stages have left, that the padding holds 0. The choice
# inside of it goes by that, and so does the assumption itself: what is left is a plain product again,
# and the crop behind it joins the function that comes next.
@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((13, 16), "float32"), B: T.Buffer((16, 13), "float32"), C: T.Buffer((13, 13), "float32")):
        P = T.alloc_buffer((16, 16))
        for i, j in T.grid(16, 16):
            with T.block("pad"):
                T.block_attr({"preproc": "layout"})
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = T.if_then_else(vi < 13, A[vi, vj], T.float32(0.0))
        Q = T.alloc_buffer((16, 13))
        for i, j, k in T.grid(16, 13, 16):
            with T.block("compute"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Q[vi, vj] = 0.0
                Q[vi, vj] = Q[vi, vj] + T.if_then_else(vi < 13, P[vi, vk], T.float32(0.0)) * B[vk, vj]
        for i, j in T.grid(13, 13):
            with T.block("crop"):
                T.block_attr({"postproc": "layout"})
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = Q[vi, vj]

    @T.prim_func
    def relu(A: T.Buffer((13, 13), "float32"), B: T.Buffer((13, 13), "float32")):
        for i, j in T.grid(13, 13):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0.0))

    @R.function
    def main(x: R.Tensor((13, 16), "float32"), w: R.Tensor((16, 13), "float32")):
        cls = Module
        with R.dataflow():
            lv0 = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((13, 13), "float32"))
            lv1 = R.call_tir(cls.relu, (lv0,), out_sinfo=R.Tensor((13, 13), "float32"))
            R.output(lv1)
        return lv1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((13, 16), dtype="float32"), w: R.Tensor((16, 13), dtype="float32")):
        cls = Module
        with R.dataflow():
            x_physical = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((16, 16), dtype="float32"))
            lv0_physical = R.call_tir(cls.matmul_physical, (x_physical, w), out_sinfo=R.Tensor((16, 13), dtype="float32"))
            lv1 = R.call_tir(cls.crop_relu, (lv0_physical,), out_sinfo=R.Tensor((13, 13), dtype="float32"))
            R.output(lv1)
        return lv1

    @T.prim_func
    def pad(A: T.Buffer((13, 16), "float32"), P: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            with T.block("pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = T.if_then_else(vi < 13, A[vi, vj], T.float32(0.0))

    @T.prim_func
    def matmul_physical(P: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 13), "float32"), Q: T.Buffer((16, 13), "float32")):
        for i, j, k in T.grid(16, 13, 16):
            with T.block("compute"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Q[vi, vj] = T.float32(0.0)
                Q[vi, vj] = Q[vi, vj] + P[vi, vk] * B[vk, vj]

    @T.prim_func
    def crop_relu(Q: T.Buffer((16, 13), "float32"), B: T.Buffer((13, 13), "float32")):
        for i, j in T.grid(13, 13):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(Q[vi, vj], T.float32(0.0))
