# run: opt --pass auto_schedule,lower_blocks,refine --pass-config auto_schedule.features=+avx512bf16
# Numbers of 16 bits in pairs of neighbours: the statement that adds two products to each lane, the second
# one first, is what code generation selects the instruction for.
@T.prim_func
def product(
    A: T.Buffer((13, 110), "bfloat16"),
    B: T.Buffer((110, 50), "bfloat16"),
    C: T.Buffer((13, 50), "float32"),
):
    T.func_attr({"layout_free_buffers": [1]})
    for i, j, k in T.grid(13, 50, 110):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def product(A: T.Buffer((13, 110), "bfloat16"), B: T.Buffer((110, 50), "bfloat16"), C: T.Buffer((13, 50), "float32")):
        T.func_attr({"layout_free_buffers": [1]})
        B_pad = T.decl_buffer((1, 55, 64, 2), "bfloat16")
        for i0, i1 in T.grid(110, 64):
            B_pad[0, i0 // 2, i1, i0 % 2] = T.if_then_else(i1 < 50, B[i0, i1], T.bfloat16(0.0))
        for i0_0 in range(2):
            C_pad = T.decl_buffer((1, 5, 64), "float32", scope="local")
            for i0_1 in T.unroll(5):
                for i1_1_0 in T.unroll(4):
                    for i1_1_1 in T.vectorized(16):
                        C_pad[0, i0_1, i1_1_0 * 16 + i1_1_1] = T.float32(0.0)
            for i2_0 in T.serial(55, annotations={"pragma_no_unroll": 1}):
                for i0_1 in T.unroll(5):
                    for i1_1_0 in T.unroll(4):
                        for j in T.vectorized(16):
                            C_pad[0, i0_1, i1_1_0 * 16 + j] = C_pad[0, i0_1, i1_1_0 * 16 + j] + T.Cast("float32", A[i0_0 * 5 + i0_1, i2_0 * 2 + 1]) * T.Cast("float32", B_pad[0, i2_0, i1_1_0 * 16 + j, 1]) + T.Cast("float32", A[i0_0 * 5 + i0_1, i2_0 * 2]) * T.Cast("float32", B_pad[0, i2_0, i1_1_0 * 16 + j, 0])
            for ax0 in T.unroll(5):
                for ax1_0 in T.unroll(4):
                    for ax1_1 in T.vectorized(16):
                        if ax1_0 * 16 + ax1_1 < 50:
                            C[i0_0 * 5 + ax0, ax1_0 * 16 + ax1_1] = C_pad[0, ax0, ax1_0 * 16 + ax1_1]
        C_pad = T.decl_buffer((1, 3, 64), "float32", scope="local")
        for i0_1 in T.unroll(3):
            for i1_1_0 in T.unroll(4):
                for i1_1_1 in T.vectorized(16):
                    C_pad[0, i0_1, i1_1_0 * 16 + i1_1_1] = T.float32(0.0)
        for i2_0 in T.serial(55, annotations={"pragma_no_unroll": 1}):
            for i0_1 in T.unroll(3):
                for i1_1_0 in T.unroll(4):
                    for j in T.vectorized(16):
                        C_pad[0, i0_1, i1_1_0 * 16 + j] = C_pad[0, i0_1, i1_1_0 * 16 + j] + T.Cast("float32", A[i0_1 + 10, i2_0 * 2 + 1]) * T.Cast("float32", B_pad[0, i2_0, i1_1_0 * 16 + j, 1]) + T.Cast("float32", A[i0_1 + 10, i2_0 * 2]) * T.Cast("float32", B_pad[0, i2_0, i1_1_0 * 16 + j, 0])
        for ax0 in T.unroll(3):
            for ax1_0 in T.unroll(4):
                for ax1_1 in T.vectorized(16):
                    if ax1_0 * 16 + ax1_1 < 50:
                        C[ax0 + 10, ax1_0 * 16 + ax1_1] = C_pad[0, ax0, ax1_0 * 16 + ax1_1]
