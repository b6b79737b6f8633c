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
#     sch.pad_einsum(block=b0, padding=[1, 8, 1])
#     b1 = sch.get_block(name="B_pad", func_name="matmul")
#     b2 = sch.get_block(name="C_pad", func_name="matmul")
#     sch.transform_layout(block=b1, buffer=["write", 0], index_map=lambda i0, i1: [i1 // 8, i0, i1 % 8])
#     sch.annotate(block_or_loop=b1, ann_key="preproc", ann_val="layout")
#     sch.set_scope(block=b0, buffer_index=0, storage_scope="local")
#     sch.transform_layout(block=b0, buffer=["write", 0], index_map=lambda i0, i1: [i1 // 8, i0, i1 % 8])
#     sch.transform_block_layout(block=b0, index_map=lambda i0, i1, i2: [i1 // 8, i0, i1 % 8, i2])
#     l3, l4, l5, l6 = sch.get_loops(block=b0)
#     l7, l8 = sch.split(loop=l4, factors=[None, 13])
#     sch.reorder(l3, l7, l6, l8, l5)
#     sch.reverse_compute_at(block=b2, loop=l7)
#     b9 = sch.decompose_reduction(block=b0, loop=l6)
#     l10, l11, l12, l13 = sch.get_loops(block=b9)
#     sch.vectorize(loop=l13)
#     sch.unroll(loop=l12)
#     l14, l15, l16, l17, l18 = sch.get_loops(block="C_update")
#     sch.vectorize(loop=l18)
#     sch.unroll(loop=l17)
#     sch.annotate(block_or_loop=l16, ann_key="pragma_no_unroll", ann_val=1)
#     l19, l20, l21, l22 = sch.get_loops(block=b2)
#     sch.vectorize(loop=l22)
#     sch.unroll(loop=l21)
