# run: opt --pass schedule_stages
# A shuffle of channels, and values that are repeated: what lies side by side is interleaved.
@T.prim_func
def shuffle(x: T.Buffer((5, 24), "float32"), y: T.Buffer((5, 24), "float32")):
    for i, c in T.grid(5, 24):
        with T.block("y"):
            vi, vc = T.axis.remap("SS", [i, c])
            y[vi, vc] = x[vi, vc * 6 - vc // 4 * 23]


@T.prim_func
def repeat(x: T.Buffer((10, 12), "float32"), y: T.Buffer((10, 24), "float32")):
    for i, j in T.grid(10, 24):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj // 2], T.float32(0))


# Nothing lies side by side, or a size is no multiple.
@T.prim_func
def others(x: T.Buffer((4, 25), "float32"), b: T.Buffer((4,), "float32"), y: T.Buffer((4, 25), "float32")):
    for i, j in T.grid(4, 25):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj // 4] + b[vj % 4]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def shuffle(x: T.Buffer((5, 24), "float32"), y: T.Buffer((5, 24), "float32")):
        for i, c_0_c_1_fused_0 in T.grid(5, 1):
            for c_0_c_1_fused_1 in T.vectorized(16):
                with T.block("y"):
                    vi = T.axis.spatial(5, i)
                    vc = T.axis.spatial(24, (c_0_c_1_fused_0 * 16 + c_0_c_1_fused_1) // 4 * 4 + (c_0_c_1_fused_0 * 16 + c_0_c_1_fused_1) % 4)
                    y[vi, vc] = x[vi, vc * 6 - vc // 4 * 23]
        for i, c_0_c_1_fused_0 in T.grid(5, 1):
            for c_0_c_1_fused_1 in T.vectorized(8):
                with T.block("y_1"):
                    vi = T.axis.spatial(5, i)
                    vc = T.axis.spatial(24, (c_0_c_1_fused_0 * 8 + c_0_c_1_fused_1 + 16) // 4 * 4 + (c_0_c_1_fused_0 * 8 + c_0_c_1_fused_1 + 16) % 4)
                    y[vi, vc] = x[vi, vc * 6 - vc // 4 * 23]

    @T.prim_func
    def repeat(x: T.Buffer((10, 12), "float32"), y: T.Buffer((10, 24), "float32")):
        for i_j_0_fused, j_1 in T.grid(120, 2):
            with T.block("y"):
                vi = T.axis.spatial(10, i_j_0_fused // 12)
                vj = T.axis.spatial(24, i_j_0_fused % 12 * 2 + j_1)
                y[vi, vj] = T.max(x[vi, vj // 2], T.float32(0.0))

    @T.prim_func
    def others(x: T.Buffer((4, 25), "float32"), b: T.Buffer((4,), "float32"), y: T.Buffer((4, 25), "float32")):
        for i, j_0, j_1 in T.grid(4, 6, 4):
            with T.block("y"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(25, j_0 * 4 + j_1)
                y[vi, vj] = x[vi, vj // 4] + b[vj % 4]
        for i, j in T.grid(4, 1):
            with T.block("y_1"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(25, j + 24)
                y[vi, vj] = x[vi, vj // 4] + b[vj % 4]
