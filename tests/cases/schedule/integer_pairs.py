# run: opt --pass expand_products
# Without dot products of bytes both operands are int16, less their zero points.
@T.prim_func
def product(
    A: T.Buffer((13, 22), "uint8"),
    a_zero: T.Buffer((), "uint8"),
    B: T.Buffer((22, 18), "int8"),
    C: T.Buffer((13, 18), "int32"),
):
    T.func_attr({"layout_free_buffers": [2]})
    for i, j, k in T.grid(13, 18, 22):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + (T.Cast("int32", A[vi, vk]) - T.Cast("int32", a_zero[()])) * T.Cast("int32", B[vk, vj])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def product(A: T.Buffer((13, 22), "uint8"), a_zero: T.Buffer((), "uint8"), B: T.Buffer((22, 18), "int8"), C: T.Buffer((13, 18), "int32")):
        T.func_attr({"layout_free_buffers": [2]})
        A_wide = T.alloc_buffer((13, 22), "int16")
        B_wide = T.alloc_buffer((22, 18), "int16")
        for v0, v1 in T.grid(13, 22):
            with T.block("A_wide"):
                v0_1, v1_1 = T.axis.remap("SS", [v0, v1])
                T.block_attr({"preproc": "operand"})
                A_wide[v0_1, v1_1] = T.Cast("int16", T.Cast("int32", A[v0_1, v1_1]) - T.Cast("int32", a_zero[()]))
        for v0, v1 in T.grid(22, 18):
            with T.block("B_wide"):
                v0_1, v1_1 = T.axis.remap("SS", [v0, v1])
                T.block_attr({"preproc": "operand"})
                B_wide[v0_1, v1_1] = T.Cast("int16", T.Cast("int32", B[v0_1, v1_1]))
        for i, j, k in T.grid(13, 18, 22):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + T.Cast("int32", A_wide[vi, vk]) * T.Cast("int32", B_wide[vk, vj])
