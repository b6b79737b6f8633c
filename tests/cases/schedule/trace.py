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
#     l10, l11 = sch.loop_partition(loop=l7, factors=[2, 1])
#     b12 = sch.get_block(name="C_init_1", func_name="matmul")
#     b13 = sch.get_block(name="C_update_1", func_name="matmul")
#     b14 = sch.get_block(name="C_pad_1", func_name="matmul")
#     l15, l16, l17, l18 = sch.get_loops(block=b9)
#     l19, l20 = sch.split(loop=l18, factors=[None, 8])
#     sch.vectorize(loop=l20)
#     sch.unroll(loop=l17)
#     sch.unroll(loop=l19)
#     l21, l22, l23, l24, l25 = sch.get_loops(block="C_update")
#     l26, l27 = sch.split(loop=l25, factors=[None, 8])
#     sch.vectorize(loop=l27)
#     sch.unroll(loop=l24)
#     sch.unroll(loop=l26)
#     sch.annotate(block_or_loop=l23, ann_key="pragma_unroll_count", ann_val=4)
#     l28, l29, l30, l31 = sch.get_loops(block=b2)
#     l32, l33 = sch.split(loop=l31, factors=[None, 8])
#     sch.vectorize(loop=l33)
#     sch.unroll(loop=l30)
#     sch.unroll(loop=l32)
#     l34, l35, l36, l37 = sch.get_loops(block=b12)
#     l38, l39 = sch.split(loop=l37, factors=[None, 8])
#     sch.vectorize(loop=l39)
#     sch.unroll(loop=l36)
#     sch.unroll(loop=l38)
#     l40, l41, l42, l43, l44 = sch.get_loops(block=b13)
#     l45, l46 = sch.split(loop=l44, factors=[None, 8])
#     sch.vectorize(loop=l46)
#     sch.unroll(loop=l43)
#     sch.unroll(loop=l45)
#     sch.annotate(block_or_loop=l42, ann_key="pragma_unroll_count", ann_val=4)
#     l47, l48, l49, l50 = sch.get_loops(block=b14)
#     l51, l52 = sch.split(loop=l50, factors=[None, 8])
#     sch.vectorize(loop=l52)
#     sch.unroll(loop=l49)
#     sch.unroll(loop=l51)
