# run: opt
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10, 9), "float32"), C: T.Buffer((6, 9), "float32")):
    for i, j, k in T.grid(6, 9, 10):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- schedule
sch.make_it_fast()
#^^^^^^^^^^^^^^^^^ error: there is no primitive `make_it_fast`
# note: the primitives are: get_block, get_sblock, get_loops, work_on, split, fuse, reorder, parallel, vectorize, unroll, bind, cache_read, cache_write, cache_inplace, transform_layout, set_axis_separator, transform_block_layout, transform_loops, fission, hoist_expression, reduce_loop_extents, loop_partition, merge_loops, remove_branching_through_overcompute, remove_overcompute_through_branching, get_inner_loops, sequential_buffer_access, decompose_padding, pad_einsum, set_scope, annotate, unannotate, reindex_cache_read, reindex_cache_write, compute_at, reverse_compute_at, compute_inline, reverse_compute_inline, tensorize, rfactor, decompose_reduction
