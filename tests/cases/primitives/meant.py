# run: opt
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32")):
    for i, j in T.grid(6, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0

# ---- schedule
sch.cach_read("B", 0, "local")
#^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: there is no primitive `cach_read`
# note: the primitives are: get_block, get_loops, work_on, split, fuse, reorder, parallel, vectorize, unroll, add_unit_loop, bind, transform_loops, get_inner_loops, fission, join_loops, compute_at, reverse_compute_at, compute_inline, reverse_compute_inline, cache_read, cache_write, cache_inplace, reindex_cache_read, reindex_cache_write, decompose_reduction, rfactor, tensorize, transform_layout, set_axis_separator, transform_block_layout, sequential_buffer_access, pad_einsum, decompose_padding, hoist_expression, reduce_loop_extents, loop_partition, loop_versions, merge_loops, remove_branching_through_overcompute, remove_overcompute_through_branching, set_scope, annotate, unannotate
# help: did you mean `cache_read`?
