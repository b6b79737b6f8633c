# run: opt --pass lower_block
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[0] = 1.0
# error: there is no pass `lower_block`
# note: the passes are: auto_schedule, cancel_layout, collapse_axes, compact_buffer, count_warp_accesses, expand_products, flatten_buffer, flow_layout, fold_constant, fuse, hoist_expression, hoist_if, inline, integer_products, lay_out_shared, legalize, lift_layout, lift_scratch, loop_partition, lower, lower_blocks, lower_opaque_block, mark_free_layout, merge_adjacent_loops, place_parts, plan_layout, reduce_loop_extents, refine, remove_assume, remove_branching_through_overcompute, remove_no_op, remove_overcompute_through_branching, remove_store_undef, renormalize_split_pattern, repeat_rows, schedule_stages, simplify, storage_flatten, unroll_loop, use_assume, use_assume_to_reduce_branches, use_border, vectorize_loop, winograd
# help: did you mean `lower_blocks`?
