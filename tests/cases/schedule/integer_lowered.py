# run: opt --pass lower_blocks,refine
# The expanded product with the trace that was found for it, down to plain loops: the statement that adds
# four products to each lane is what code generation selects the instruction for.
@I.ir_module
class Module:
    @T.prim_func
    def product(A: T.Buffer((13, 70), "uint8"), a_zero: T.Buffer((), "uint8"), B: T.Buffer((70, 50), "int8"), C: T.Buffer((13, 50), "int32")):
        T.func_attr({"layout_free_buffers": [2]})
        C_products = T.alloc_buffer((13, 50), "int32")
        C_B_sums = T.alloc_buffer((50,), "int32")
        for j, k in T.grid(50, 70):
            with T.block("C_B_sums"):
                vj, vk = T.axis.remap("SR", [j, k])
                T.block_attr({"preproc": "operand"})
                with T.init():
                    C_B_sums[vj] = 0
                C_B_sums[vj] = C_B_sums[vj] + T.Cast("int32", B[vk, vj])
        for i, j, k in T.grid(13, 50, 70):
            with T.block("C_products"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_products[vi, vj] = 0
                C_products[vi, vj] = C_products[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])
        for i, j in T.grid(13, 50):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_products[vi, vj] - T.Cast("int32", a_zero[()]) * C_B_sums[vj]

# ---- schedule
b0 = sch.get_block(name="C_products", func_name="product")
b1 = sch.get_block(name="C", func_name="product")
sch.pad_einsum(block=b0, padding=[1, 64, 4])
b2 = sch.get_block(name="A_pad", func_name="product")
b3 = sch.get_block(name="B_pad", func_name="product")
b4 = sch.get_block(name="C_products_pad", func_name="product")
sch.compute_inline(block=b4)
sch.transform_layout(block=b3, buffer=["write", 0], index_map=lambda i0, i1: [i1 // 64, i0 // 4, i1 % 64, i0 % 4])
sch.annotate(block_or_loop=b3, ann_key="preproc", ann_val="layout")
sch.set_scope(block=b0, buffer_index=0, storage_scope="local")
sch.transform_layout(block=b0, buffer=["write", 0], index_map=lambda i0, i1: [i1 // 64, i0, i1 % 64])
sch.transform_block_layout(block=b0, index_map=lambda i0, i1, i2: [i1 // 64, i0, i1 % 64, i2 // 4, i2 % 4])
l5, l6, l7, l8, l9 = sch.get_loops(block=b0)
l10, l11 = sch.split(loop=l6, factors=[None, 5])
sch.reorder(l5, l10, l8, l11, l7, l9)
sch.reverse_compute_at(block=b1, loop=l10)
b12 = sch.decompose_reduction(block=b0, loop=l8)
l13, l14, l15, l16 = sch.get_loops(block=b12)
l17, l18 = sch.loop_partition(loop=l14, factors=[2, 1])
b19 = sch.get_block(name="C_products_init_1", func_name="product")
b20 = sch.get_block(name="C_products_update_1", func_name="product")
b21 = sch.get_block(name="C_1", func_name="product")
l22, l23, l24, l25 = sch.get_loops(block=b12)
l26, l27 = sch.split(loop=l25, factors=[None, 16])
sch.vectorize(loop=l27)
sch.unroll(loop=l24)
sch.unroll(loop=l26)
l28, l29, l30, l31, l32, l33 = sch.get_loops(block="C_products_update")
l34, l35 = sch.split(loop=l32, factors=[None, 16])
sch.tensorize(block_or_loop=l35, tensor_intrin="vpdpbusd_512_u8_i8")
sch.unroll(loop=l31)
sch.unroll(loop=l34)
sch.annotate(block_or_loop=l30, ann_key="pragma_unroll_count", ann_val=4)
l36, l37, l38, l39 = sch.get_loops(block=b1)
l40, l41 = sch.split(loop=l39, factors=[None, 16])
sch.vectorize(loop=l41)
sch.unroll(loop=l38)
sch.unroll(loop=l40)
l42, l43, l44, l45 = sch.get_loops(block=b19)
l46, l47 = sch.split(loop=l45, factors=[None, 16])
sch.vectorize(loop=l47)
sch.unroll(loop=l44)
sch.unroll(loop=l46)
l48, l49, l50, l51, l52, l53 = sch.get_loops(block=b20)
l54, l55 = sch.split(loop=l52, factors=[None, 16])
sch.tensorize(block_or_loop=l55, tensor_intrin="vpdpbusd_512_u8_i8")
sch.unroll(loop=l51)
sch.unroll(loop=l54)
sch.annotate(block_or_loop=l50, ann_key="pragma_unroll_count", ann_val=4)
l56, l57, l58, l59 = sch.get_loops(block=b21)
l60, l61 = sch.split(loop=l59, factors=[None, 16])
sch.vectorize(loop=l61)
sch.unroll(loop=l58)
sch.unroll(loop=l60)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def product(A: T.Buffer((13, 70), "uint8"), a_zero: T.Buffer((), "uint8"), B: T.Buffer((70, 50), "int8"), C: T.Buffer((13, 50), "int32")):
        T.func_attr({"layout_free_buffers": [2]})
        C_B_sums = T.decl_buffer((50,), "int32")
        for j, k in T.grid(50, 70):
            if k == 0:
                C_B_sums[j] = 0
            C_B_sums[j] = C_B_sums[j] + T.Cast("int32", B[k, j])
        A_pad = T.decl_buffer((13, 72), "uint8")
        for i0, i1 in T.grid(13, 72):
            A_pad[i0, i1] = T.if_then_else(i1 < 70, A[i0, i1], T.uint8(0))
        B_pad = T.decl_buffer((1, 18, 64, 4), "int8")
        for i0, i1 in T.grid(72, 64):
            B_pad[0, i0 // 4, i1, i0 % 4] = T.if_then_else(i0 < 70 and i1 < 50, B[i0, i1], T.int8(0))
        for i0_0 in range(2):
            C_products_pad = T.decl_buffer((1, 5, 64), "int32", scope="local")
            for i0_1 in T.unroll(5):
                for i1_1_0 in T.unroll(4):
                    for i1_1_1 in T.vectorized(16):
                        C_products_pad[0, i0_1, i1_1_0 * 16 + i1_1_1] = 0
            for i2_0 in T.serial(18, annotations={"pragma_unroll_count": 4}):
                for i0_1 in T.unroll(5):
                    for i1_1_0 in T.unroll(4):
                        for j in T.vectorized(16):
                            C_products_pad[0, i0_1, i1_1_0 * 16 + j] = C_products_pad[0, i0_1, i1_1_0 * 16 + j] + (T.Cast("int32", A_pad[i0_0 * 5 + i0_1, i2_0 * 4]) * T.Cast("int32", B_pad[0, i2_0, i1_1_0 * 16 + j, 0]) + T.Cast("int32", A_pad[i0_0 * 5 + i0_1, i2_0 * 4 + 1]) * T.Cast("int32", B_pad[0, i2_0, i1_1_0 * 16 + j, 1]) + T.Cast("int32", A_pad[i0_0 * 5 + i0_1, i2_0 * 4 + 2]) * T.Cast("int32", B_pad[0, i2_0, i1_1_0 * 16 + j, 2]) + T.Cast("int32", A_pad[i0_0 * 5 + i0_1, i2_0 * 4 + 3]) * T.Cast("int32", B_pad[0, i2_0, i1_1_0 * 16 + j, 3]))
            for ax0 in T.unroll(5):
                for ax1_0 in T.unroll(4):
                    for ax1_1 in T.vectorized(16):
                        if ax1_0 * 16 + ax1_1 < 50:
                            C[i0_0 * 5 + ax0, ax1_0 * 16 + ax1_1] = C_products_pad[0, ax0, ax1_0 * 16 + ax1_1] - T.Cast("int32", a_zero[()]) * C_B_sums[ax1_0 * 16 + ax1_1]
        C_products_pad = T.decl_buffer((1, 3, 64), "int32", scope="local")
        for i0_1 in T.unroll(3):
            for i1_1_0 in T.unroll(4):
                for i1_1_1 in T.vectorized(16):
                    C_products_pad[0, i0_1, i1_1_0 * 16 + i1_1_1] = 0
        for i2_0 in T.serial(18, annotations={"pragma_unroll_count": 4}):
            for i0_1 in T.unroll(3):
                for i1_1_0 in T.unroll(4):
                    for j in T.vectorized(16):
                        C_products_pad[0, i0_1, i1_1_0 * 16 + j] = C_products_pad[0, i0_1, i1_1_0 * 16 + j] + (T.Cast("int32", A_pad[i0_1 + 10, i2_0 * 4]) * T.Cast("int32", B_pad[0, i2_0, i1_1_0 * 16 + j, 0]) + T.Cast("int32", A_pad[i0_1 + 10, i2_0 * 4 + 1]) * T.Cast("int32", B_pad[0, i2_0, i1_1_0 * 16 + j, 1]) + T.Cast("int32", A_pad[i0_1 + 10, i2_0 * 4 + 2]) * T.Cast("int32", B_pad[0, i2_0, i1_1_0 * 16 + j, 2]) + T.Cast("int32", A_pad[i0_1 + 10, i2_0 * 4 + 3]) * T.Cast("int32", B_pad[0, i2_0, i1_1_0 * 16 + j, 3]))
        for ax0 in T.unroll(3):
            for ax1_0 in T.unroll(4):
                for ax1_1 in T.vectorized(16):
                    if ax1_0 * 16 + ax1_1 < 50:
                        C[ax0 + 10, ax1_0 * 16 + ax1_1] = C_products_pad[0, ax0, ax1_0 * 16 + ax1_1] - T.Cast("int32", a_zero[()]) * C_B_sums[ax1_0 * 16 + ax1_1]
