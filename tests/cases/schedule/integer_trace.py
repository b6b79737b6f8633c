# run: opt --pass expand_products,auto_schedule --pass-config expand_products.features=+avx512vnni --pass-config auto_schedule.features=+avx512vnni --print-trace
# From the logical function to the trace of its dot products.
@T.prim_func
def product(
    A: T.Buffer((13, 70), "uint8"),
    a_zero: T.Buffer((), "uint8"),
    B: T.Buffer((70, 50), "int8"),
    C: T.Buffer((13, 50), "int32"),
):
    T.func_attr({"layout_free_buffers": [2]})
    for i, j, k in T.grid(13, 50, 70):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + (T.Cast("int32", A[vi, vk]) - T.Cast("int32", a_zero[()])) * T.Cast("int32", B[vk, vj])

# ---- expected
# def apply_trace(sch):
#     b0 = sch.get_block(name="C_products", func_name="product")
#     b1 = sch.get_block(name="C", func_name="product")
#     sch.pad_einsum(block=b0, padding=[1, 64, 4])
#     b2 = sch.get_block(name="A_pad", func_name="product")
#     b3 = sch.get_block(name="B_pad", func_name="product")
#     b4 = sch.get_block(name="C_products_pad", func_name="product")
#     sch.compute_inline(block=b4)
#     sch.transform_layout(block=b3, buffer=["write", 0], index_map=lambda i0, i1: [i1 // 64, i0 // 4, i1 % 64, i0 % 4])
#     sch.annotate(block_or_loop=b3, ann_key="preproc", ann_val="layout")
#     sch.set_scope(block=b0, buffer_index=0, storage_scope="local")
#     sch.transform_layout(block=b0, buffer=["write", 0], index_map=lambda i0, i1: [i1 // 64, i0, i1 % 64])
#     sch.transform_block_layout(block=b0, index_map=lambda i0, i1, i2: [i1 // 64, i0, i1 % 64, i2 // 4, i2 % 4])
#     l5, l6, l7, l8, l9 = sch.get_loops(block=b0)
#     l10, l11 = sch.split(loop=l6, factors=[None, 6])
#     sch.reorder(l5, l10, l8, l11, l7, l9)
#     sch.reverse_compute_at(block=b1, loop=l10)
#     b12 = sch.decompose_reduction(block=b0, loop=l8)
#     l13, l14, l15, l16 = sch.get_loops(block=b12)
#     l17, l18 = sch.loop_partition(loop=l14, factors=[2, 1])
#     b19 = sch.get_block(name="C_products_init_1", func_name="product")
#     b20 = sch.get_block(name="C_products_update_1", func_name="product")
#     b21 = sch.get_block(name="C_1", func_name="product")
#     l22, l23, l24, l25 = sch.get_loops(block=b12)
#     l26, l27 = sch.split(loop=l25, factors=[None, 16])
#     sch.vectorize(loop=l27)
#     sch.unroll(loop=l24)
#     sch.unroll(loop=l26)
#     l28, l29, l30, l31, l32, l33 = sch.get_loops(block="C_products_update")
#     l34, l35 = sch.split(loop=l32, factors=[None, 16])
#     sch.tensorize(block_or_loop=l35, tensor_intrin="vpdpbusd_512_u8_i8")
#     sch.unroll(loop=l31)
#     sch.unroll(loop=l34)
#     sch.annotate(block_or_loop=l30, ann_key="pragma_unroll_count", ann_val=4)
#     l36, l37, l38, l39 = sch.get_loops(block=b1)
#     l40, l41 = sch.split(loop=l39, factors=[None, 16])
#     sch.vectorize(loop=l41)
#     sch.unroll(loop=l38)
#     sch.unroll(loop=l40)
#     l42, l43, l44, l45 = sch.get_loops(block=b19)
#     l46, l47 = sch.split(loop=l45, factors=[None, 16])
#     sch.vectorize(loop=l47)
#     sch.unroll(loop=l44)
#     sch.unroll(loop=l46)
#     l48, l49, l50, l51, l52, l53 = sch.get_loops(block=b20)
#     l54, l55 = sch.split(loop=l52, factors=[None, 16])
#     sch.tensorize(block_or_loop=l55, tensor_intrin="vpdpbusd_512_u8_i8")
#     sch.unroll(loop=l51)
#     sch.unroll(loop=l54)
#     sch.annotate(block_or_loop=l50, ann_key="pragma_unroll_count", ann_val=4)
#     l56, l57, l58, l59 = sch.get_loops(block=b21)
#     l60, l61 = sch.split(loop=l59, factors=[None, 16])
#     sch.vectorize(loop=l61)
#     sch.unroll(loop=l58)
#     sch.unroll(loop=l60)
#     b62 = sch.get_block(name="A_pad", func_name="product")
#     l63, l64 = sch.get_loops(block=b62)
#     b65 = sch.decompose_padding(block=b62, loop=l63)
#     l66, l67 = sch.get_loops(block=b65)
#     l68 = sch.fuse(l66, l67)
#     l69, l70 = sch.get_loops(block=b62)
