"""Random chains of passes with options, for modules of tensor functions."""

PASSES = [
    "auto_schedule",
    "flatten_buffer",
    "hoist_expression",
    "hoist_if",
    "inline",
    "legalize",
    "lift_scratch",
    "loop_partition",
    "lower",
    "lower_blocks",
    "lower_opaque_block",
    "merge_adjacent_loops",
    "reduce_loop_extents",
    "remove_assume",
    "remove_branching_through_overcompute",
    "remove_no_op",
    "remove_overcompute_through_branching",
    "remove_store_undef",
    "renormalize_split_pattern",
    "simplify",
    "storage_flatten",
    "use_assume",
    "use_assume_to_reduce_branches",
    "vectorize_loop",
]

# Those that change the most are asked for more often.
OFTEN = [
    "simplify",
    "simplify",
    "remove_no_op",
    "remove_no_op",
    "remove_branching_through_overcompute",
    "remove_branching_through_overcompute",
    "remove_overcompute_through_branching",
    "merge_adjacent_loops",
    "reduce_loop_extents",
    "hoist_expression",
    "use_assume",
    "lower",
]

# Options that keep the meaning; `finite` is a promise that random data may break.
OPTIONS = {
    "hoist_expression": [("hoisted_conditionals", 16), ("hoisted_let_bindings", 8)],
    "hoist_if": [("support_block_scope_hoisting", 2)],
    "loop_partition": [
        ("partition_const_loop", 2),
        ("no_unroll_loop_with_extent_one", 2),
        ("unroll_loop_with_partition_hint_no_interval", 2),
    ],
    "remove_branching_through_overcompute": [("wrap_indices", 2)],
    "remove_no_op": [("use_dataflow_analysis", 2)],
    "simplify": [
        ("propagate_knowns_to_prove_conditional", 2),
        ("propagate_knowns_to_simplify_expressions", 2),
    ],
}

# What needs the form that another pass leaves.
BEFORE = {
    "flatten_buffer": ["lower_blocks"],
    "vectorize_loop": ["lower_blocks", "flatten_buffer"],
    "lift_scratch": ["lower_blocks", "flatten_buffer"],
}


GUARDS = [
    "remove_branching_through_overcompute",
    "remove_branching_through_overcompute",
    "remove_overcompute_through_branching",
    "remove_no_op",
    "simplify",
]


def chain(rng, guards=False):
    """Names of passes in order, and the settings for them; with `guards` one that works on these
    comes first."""
    passes = [rng.choice(GUARDS)] if guards else []
    for _ in range(rng.choice([1, 1, 2, 3, 4])):
        name = rng.choice(OFTEN + PASSES)
        passes += [p for p in BEFORE.get(name, []) if p not in passes] + [name]
        if name == "lower":
            break
    settings = {}
    for name in passes:
        for key, values in OPTIONS.get(name, []):
            if rng.random() < 0.3:
                settings[f"{name}.{key}"] = rng.randrange(values)
    return passes, settings
