# run: opt --pass schedule_stages
# Weights of halves that tiles of many rows convert are widened once, before all tiles; what is assumed of them stays.
# Those that few tiles convert are widened in registers.
@T.prim_func
def many(A: T.Buffer((96, 8), "float32"), W: T.Buffer((8, 16), "float16"), C: T.Buffer((96, 16), "float32")):
    for k, l in T.grid(8, 16):
        with T.block("pad"):
            vk, vl = T.axis.remap("SS", [k, l])
            T.assume(vl < 16 or W[vk, vl] == T.float16(0))
    for o in T.parallel(16):
        for k in range(8):
            for m in T.unroll(6):
                for l in T.vectorized(16):
                    C[o * 6 + m, l] = C[o * 6 + m, l] + A[o * 6 + m, k] * T.Cast("float32", W[k, l])


@T.prim_func
def few(A: T.Buffer((24, 8), "float32"), W: T.Buffer((8, 16), "float16"), C: T.Buffer((24, 16), "float32")):
    for o in T.parallel(4):
        for k in range(8):
            for m in T.unroll(6):
                for l in T.vectorized(16):
                    C[o * 6 + m, l] = C[o * 6 + m, l] + A[o * 6 + m, k] * T.Cast("float32", W[k, l])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def many(A: T.Buffer((96, 8), "float32"), W: T.Buffer((8, 16), "float16"), C: T.Buffer((96, 16), "float32")):
        W_wide = T.alloc_buffer((8, 16), "float32")
        for v0_1_fused in range(128):
            with T.block("W_wide"):
                v0 = T.axis.spatial(8, v0_1_fused // 16)
                v1 = T.axis.spatial(16, v0_1_fused % 16)
                W_wide[v0, v1] = T.Cast("float32", W[v0, v1])
        for k, l in T.grid(8, 16):
            with T.block("pad"):
                vk, vl = T.axis.remap("SS", [k, l])
                T.assume(vl < 16 or W[vk, vl] == T.float16(0.0))
        for o in T.parallel(16):
            for k in range(8):
                for m in T.unroll(6):
                    for l in T.vectorized(16):
                        C[o * 6 + m, l] = C[o * 6 + m, l] + A[o * 6 + m, k] * W_wide[k, l]

    @T.prim_func
    def few(A: T.Buffer((24, 8), "float32"), W: T.Buffer((8, 16), "float16"), C: T.Buffer((24, 16), "float32")):
        for o in T.parallel(4):
            for k in range(8):
                for m in T.unroll(6):
                    for l in T.vectorized(16):
                        C[o * 6 + m, l] = C[o * 6 + m, l] + A[o * 6 + m, k] * T.Cast("float32", W[k, l])
