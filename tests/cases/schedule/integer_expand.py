# run: opt --pass expand_products --pass-config expand_products.features=+avx512vnni
# Two signed operands: the one of a run moves by 128, with its zero point, so that the other one keeps none;
# the sums of the other one, which are made once, take the zero point out of the product.
@T.prim_func
def product(
    A: T.Buffer((13, 22), "int8"),
    a_zero: T.Buffer((), "int8"),
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
    def product(A: T.Buffer((13, 22), "int8"), a_zero: T.Buffer((), "int8"), B: T.Buffer((22, 18), "int8"), C: T.Buffer((13, 18), "int32")):
        T.func_attr({"layout_free_buffers": [2]})
        A_moved = T.alloc_buffer((13, 22), "uint8")
        C_products = T.alloc_buffer((13, 18), "int32")
        C_B_sums = T.alloc_buffer((18,), "int32")
        for v0, v1 in T.grid(13, 22):
            with T.block("A_moved"):
                v0_1, v1_1 = T.axis.remap("SS", [v0, v1])
                T.block_attr({"preproc": "operand"})
                A_moved[v0_1, v1_1] = T.Cast("uint8", T.Cast("int32", A[v0_1, v1_1]) + 128)
        for j, k in T.grid(18, 22):
            with T.block("C_B_sums"):
                vj, vk = T.axis.remap("SR", [j, k])
                T.block_attr({"preproc": "operand"})
                with T.init():
                    C_B_sums[vj] = 0
                C_B_sums[vj] = C_B_sums[vj] + T.Cast("int32", B[vk, vj])
        for i, j, k in T.grid(13, 18, 22):
            with T.block("C_products"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_products[vi, vj] = 0
                C_products[vi, vj] = C_products[vi, vj] + T.Cast("int32", A_moved[vi, vk]) * T.Cast("int32", B[vk, vj])
        for i, j in T.grid(13, 18):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_products[vi, vj] - (T.Cast("int32", a_zero[()]) + 128) * C_B_sums[vj]
