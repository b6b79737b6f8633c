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
# note: the primitives are: get_block, get_loops, work_on, split, fuse, reorder, parallel, vectorize, unroll, add_unit_loop, bind, transform_loops, get_inner_loops, fission, join_loops, compute_at, reverse_compute_at, compute_inline, reverse_compute_inline, cache_read, cache_write, cache_inplace, reindex_cache_read, reindex_cache_write, decompose_reduction, rfactor, tensorize, transform_layout, set_axis_separator, transform_block_layout, sequential_buffer_access, pad_einsum, decompose_padding, hoist_expression, reduce_loop_extents, loop_partition, loop_versions, merge_loops, remove_branching_through_overcompute, remove_overcompute_through_branching, set_scope, annotate, unannotate
