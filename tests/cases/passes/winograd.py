# run: opt --pass winograd --pass-config tile=2 --pass-config winograd.cpu=x86-64-v3
# semantics: not compared, because transforms round otherwise
# A convolution by tiles of 2 x 2 results. The last tile of each row is cut: it has stages of its own.


@I.ir_module
class Module:
    @T.prim_func
    def conv(
        X: T.Buffer((2, 4, 5), "float32"), W: T.Buffer((1, 2, 3, 3), "float32"), Y: T.Buffer((1, 4, 3), "float32")
    ):
        P = T.alloc_buffer((2, 6, 5))
        S = T.alloc_buffer((1, 4, 3))
        for c, h, w in T.grid(2, 6, 5):
            with T.block("P"):
                vc, vh, vw = T.axis.remap("SSS", [c, h, w])
                P[vc, vh, vw] = T.if_then_else(1 <= vh and vh < 5, X[vc, vh - 1, vw], 0.0)
        for k, h, w, c, r, s in T.grid(1, 4, 3, 2, 3, 3):
            with T.block("S"):
                vk, vh, vw, vc, vr, vs = T.axis.remap("SSSRRR", [k, h, w, c, r, s])
                with T.init():
                    S[vk, vh, vw] = 0.0
                S[vk, vh, vw] = S[vk, vh, vw] + P[vc, vh + vr, vw + vs] * W[vk, vc, vr, vs]
        for k, h, w in T.grid(1, 4, 3):
            with T.block("Y"):
                vk, vh, vw = T.axis.remap("SSS", [k, h, w])
                Y[vk, vh, vw] = T.max(S[vk, vh, vw], 0.0)

    @R.function
    def main(x: R.Tensor((2, 4, 5), "float32")) -> R.Tensor((1, 4, 3), "float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.conv, (x, R.const([[[[1, 0, -1], [2, 0, -2], [1, 0, -1]], [[0, 1, 0], [1, -4, 1], [0, 1, 0]]]], "float32")), out_sinfo=R.Tensor((1, 4, 3), "float32"))
            R.output(gv)
        return gv

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 4, 5), dtype="float32")) -> R.Tensor((1, 4, 3), dtype="float32"):
        R.func_attr({"tilewright.winograd": [["gv", 2, 9.248586704197843e-8, 8.507058665963221e36]]})
        cls = Module
        with R.dataflow():
            conv_transformed = R.call_tir(cls.conv_transformed, (x,), out_sinfo=R.Tensor((4, 4, 2, 4), dtype="float32"))
            conv_products = R.call_tir(cls.conv_products, (conv_transformed, R.const([[[[1.0, 0.0]], [[0.0, -0.5]], [[0.0, 0.5]], [[1.0, 0.0]]], [[[-2.0, -0.5]], [[0.0, 0.0]], [[0.0, 1.0]], [[-2.0, 0.5]]], [[[0.0, 0.5]], [[0.0, 1.0]], [[0.0, -2.0]], [[0.0, -0.5]]], [[[-1.0, 0.0]], [[0.0, 0.5]], [[0.0, -0.5]], [[-1.0, 0.0]]]], "float32")), out_sinfo=R.Tensor((4, 4, 1, 2, 2), dtype="float32"))
            gv = R.call_tir(cls.conv_results, (conv_products,), out_sinfo=R.Tensor((1, 4, 3), dtype="float32"))
            R.output(gv)
        return gv

    @T.prim_func
    def conv_transformed(X: T.Buffer((2, 4, 5), "float32"), transformed: T.Buffer((4, 4, 2, 4), "float32")):
        P_padded = T.alloc_buffer((2, 6, 6), "float32")
        half = T.alloc_buffer((2, 2, 2, 4, 4), "float32")
        for v0, v1, v2 in T.grid(2, 6, 6):
            with T.block("P_padded"):
                v0_1, v1_1, v2_1 = T.axis.remap("SSS", [v0, v1, v2])
                P_padded[v0_1, v1_1, v2_1] = T.if_then_else(1 <= v1_1 and v1_1 < 5 and v2_1 < 5, X[v0_1, v1_1 - 1, v2_1], T.float32(0.0))
        for v0, v1, v2, x, y in T.grid(2, 2, 2, 4, 4):
            with T.block("S_half"):
                v0_1, v1_1, v2_1, vx, vy = T.axis.remap("SSSSS", [v0, v1, v2, x, y])
                half[v0_1, v1_1, v2_1, vx, vy] = T.Select(vx == 0, P_padded[v0_1, v1_1 * 2 + 2, v2_1 * 2 + vy] - P_padded[v0_1, v1_1 * 2, v2_1 * 2 + vy], T.Select(vx == 1, P_padded[v0_1, v1_1 * 2 + 1, v2_1 * 2 + vy] + P_padded[v0_1, v1_1 * 2 + 2, v2_1 * 2 + vy], T.Select(vx == 2, P_padded[v0_1, v1_1 * 2 + 2, v2_1 * 2 + vy] - P_padded[v0_1, v1_1 * 2 + 1, v2_1 * 2 + vy], P_padded[v0_1, v1_1 * 2 + 3, v2_1 * 2 + vy] - P_padded[v0_1, v1_1 * 2 + 1, v2_1 * 2 + vy])))
        for v0, v1, v2, x, y in T.grid(2, 2, 2, 4, 4):
            with T.block("S_transformed"):
                v0_1, v1_1, v2_1, vx, vy = T.axis.remap("SSSSS", [v0, v1, v2, x, y])
                transformed[vx, vy, v0_1, v1_1 * 2 + v2_1] = T.Select(vy == 0, half[v0_1, v1_1, v2_1, vx, 2] - half[v0_1, v1_1, v2_1, vx, 0], T.Select(vy == 1, half[v0_1, v1_1, v2_1, vx, 1] + half[v0_1, v1_1, v2_1, vx, 2], T.Select(vy == 2, half[v0_1, v1_1, v2_1, vx, 2] - half[v0_1, v1_1, v2_1, vx, 1], half[v0_1, v1_1, v2_1, vx, 3] - half[v0_1, v1_1, v2_1, vx, 1])))

    @T.prim_func
    def conv_products(transformed: T.Buffer((4, 4, 2, 4), "float32"), weights: T.Buffer((4, 4, 1, 2), "float32"), sums: T.Buffer((4, 4, 1, 2, 2), "float32")):
        for x, y, k, h, w, c in T.grid(4, 4, 1, 2, 2, 2):
            with T.block("products"):
                vx, vy, vk, vh, vw, vc = T.axis.remap("SSSSSR", [x, y, k, h, w, c])
                with T.init():
                    sums[vx, vy, vk, vh, vw] = T.float32(0.0)
                sums[vx, vy, vk, vh, vw] = sums[vx, vy, vk, vh, vw] + transformed[vx, vy, vc, vh * 2 + vw] * weights[vx, vy, vk, vc]

    @T.prim_func
    def conv_results(sums: T.Buffer((4, 4, 1, 2, 2), "float32"), Y: T.Buffer((1, 4, 3), "float32")):
        half = T.alloc_buffer((1, 2, 1, 2, 4), "float32")
        S = T.alloc_buffer((1, 2, 1, 2, 2), "float32")
        half_1 = T.alloc_buffer((1, 2, 1, 2, 4), "float32")
        S_1 = T.alloc_buffer((1, 2, 1, 2, 1), "float32")
        for v0, v1, v2, y, j in T.grid(1, 2, 1, 2, 4):
            with T.block("S_half"):
                v0_1, v1_1, v2_1, vy, vj = T.axis.remap("SSSSS", [v0, v1, v2, y, j])
                half[v0_1, v1_1, v2_1, vy, vj] = T.Select(vy == 0, sums[0, vj, v0_1, v1_1, v2_1] + sums[1, vj, v0_1, v1_1, v2_1] + sums[2, vj, v0_1, v1_1, v2_1], sums[1, vj, v0_1, v1_1, v2_1] - sums[2, vj, v0_1, v1_1, v2_1] + sums[3, vj, v0_1, v1_1, v2_1])
        for v0, v1, v2, y, x in T.grid(1, 2, 1, 2, 2):
            with T.block("S_results"):
                v0_1, v1_1, v2_1, vy, vx = T.axis.remap("SSSSS", [v0, v1, v2, y, x])
                S[v0_1, v1_1, v2_1, vy, vx] = T.Select(vx == 0, half[v0_1, v1_1, v2_1, vy, 0] + half[v0_1, v1_1, v2_1, vy, 1] + half[v0_1, v1_1, v2_1, vy, 2], half[v0_1, v1_1, v2_1, vy, 1] - half[v0_1, v1_1, v2_1, vy, 2] + half[v0_1, v1_1, v2_1, vy, 3])
        for k, t0, t1, y, x in T.grid(1, 2, 1, 2, 2):
            with T.block("Y"):
                vk, vt0, vt1, vy, vx = T.axis.remap("SSSSS", [k, t0, t1, y, x])
                Y[vk, vt0 * 2 + vy, vt1 * 2 + vx] = T.max(S[vk, vt0, vt1, vy, vx], T.float32(0.0))
        for v0, v1, v2, y, j in T.grid(1, 2, 1, 2, 4):
            with T.block("S_half_right"):
                v0_1, v1_1, v2_1, vy, vj = T.axis.remap("SSSSS", [v0, v1, v2, y, j])
                half_1[v0_1, v1_1, v2_1, vy, vj] = T.Select(vy == 0, sums[0, vj, v0_1, v1_1, v2_1 + 1] + sums[1, vj, v0_1, v1_1, v2_1 + 1] + sums[2, vj, v0_1, v1_1, v2_1 + 1], sums[1, vj, v0_1, v1_1, v2_1 + 1] - sums[2, vj, v0_1, v1_1, v2_1 + 1] + sums[3, vj, v0_1, v1_1, v2_1 + 1])
        for v0, v1, v2, y, x in T.grid(1, 2, 1, 2, 1):
            with T.block("S_results_right"):
                v0_1, v1_1, v2_1, vy, vx = T.axis.remap("SSSSS", [v0, v1, v2, y, x])
                S_1[v0_1, v1_1, v2_1, vy, vx] = half_1[v0_1, v1_1, v2_1, vy, 0] + half_1[v0_1, v1_1, v2_1, vy, 1] + half_1[v0_1, v1_1, v2_1, vy, 2]
        for k, t0, t1, y, x in T.grid(1, 2, 1, 2, 1):
            with T.block("Y_right"):
                vk, vt0, vt1, vy, vx = T.axis.remap("SSSSS", [k, t0, t1, y, x])
                Y[vk, vt0 * 2 + vy, (vt1 + 1) * 2 + vx] = T.max(S_1[vk, vt0, vt1, vy, vx], T.float32(0.0))
