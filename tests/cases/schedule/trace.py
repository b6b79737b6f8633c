# run: opt --pass auto_schedule --print-trace
@T.prim_func
def matmul(
    A: T.Buffer((13, 37), "float32"),
    B: T.Buffer((37, 27), "float32"),
    C: T.Buffer((13, 27), "float32"),
):
    T.func_attr({"layout_free_buffers": [1]})
    for i, j, k in T.grid(13, 27, 37):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- expected
# def apply_trace(sch):
#     b0 = sch.get_block(name="C", func_name="matmul")
#     sch.pad_einsum(block=b0, padding=[1, 16, 1])
#     b1 = sch.get_block(name="B_pad", func_name="matmul")
#     b2 = sch.get_block(name="C_pad", func_name="matmul")
#     sch.transform_layout(block=b1, buffer=["write", 0], index_map=lambda i0, i1: [i1 // 16, i0, i1 % 16])
#     sch.annotate(block_or_loop=b1, ann_key="preproc", ann_val="layout")
#     sch.set_scope(block=b0, buffer_index=0, storage_scope="local")
#     sch.transform_layout(block=b0, buffer=["write", 0], index_map=lambda i0, i1: [i1 // 16, i0, i1 % 16])
#     sch.transform_block_layout(block=b0, index_map=lambda i0, i1, i2: [i1 // 16, i0, i1 % 16, i2])
#     l3, l4, l5, l6 = sch.get_loops(block=b0)
#     l7, l8 = sch.split(loop=l4, factors=[None, 5])
#     sch.reorder(l3, l7, l6, l8, l5)
#     sch.reverse_compute_at(block=b2, loop=l7)
#     b9 = sch.decompose_reduction(block=b0, loop=l6)
#     l10, l11, l12, l13 = sch.get_loops(block=b9)
#     l14, l15 = sch.loop_partition(loop=l11, factors=[2, 1])
#     b16 = sch.get_block(name="C_init_1", func_name="matmul")
#     b17 = sch.get_block(name="C_update_1", func_name="matmul")
#     b18 = sch.get_block(name="C_pad_1", func_name="matmul")
#     l19, l20, l21, l22 = sch.get_loops(block=b9)
#     l23, l24 = sch.split(loop=l22, factors=[None, 8])
#     sch.vectorize(loop=l24)
#     sch.unroll(loop=l21)
#     sch.unroll(loop=l23)
#     l25, l26, l27, l28, l29 = sch.get_loops(block="C_update")
#     l30, l31 = sch.split(loop=l29, factors=[None, 8])
#     sch.vectorize(loop=l31)
#     sch.unroll(loop=l28)
#     sch.unroll(loop=l30)
#     sch.annotate(block_or_loop=l27, ann_key="pragma_unroll_count", ann_val=4)
#     l32, l33, l34, l35 = sch.get_loops(block=b2)
#     l36, l37 = sch.split(loop=l35, factors=[None, 8])
#     sch.vectorize(loop=l37)
#     sch.unroll(loop=l34)
#     sch.unroll(loop=l36)
#     l38, l39, l40, l41 = sch.get_loops(block=b16)
#     l42, l43 = sch.split(loop=l41, factors=[None, 8])
#     sch.vectorize(loop=l43)
#     sch.unroll(loop=l40)
#     sch.unroll(loop=l42)
#     l44, l45, l46, l47, l48 = sch.get_loops(block=b17)
#     l49, l50 = sch.split(loop=l48, factors=[None, 8])
#     sch.vectorize(loop=l50)
#     sch.unroll(loop=l47)
#     sch.unroll(loop=l49)
#     sch.annotate(block_or_loop=l46, ann_key="pragma_unroll_count", ann_val=4)
#     l51, l52, l53, l54 = sch.get_loops(block=b18)
#     l55, l56 = sch.split(loop=l54, factors=[None, 8])
#     sch.vectorize(loop=l56)
#     sch.unroll(loop=l53)
#     sch.unroll(loop=l55)
