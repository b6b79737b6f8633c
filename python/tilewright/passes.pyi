"""Every pass as a function: ``simplify(module, option=value)`` gives what it made."""

# Written by `python -m tilewright._stubs` from the tables of the compiler.

from typing import Literal

from .module import Module, Transformed

__all__: list[str]

def kind_of(values: str) -> str: ...
def default_of(kind: str, text: str) -> bool | int | str: ...
def choices_of(values: str) -> tuple[str, ...]: ...

def auto_schedule(
    module: Module,
    *,
    cpu: str = "",
    features: str = "+avx2,+fma",
    triple: str = "x86_64-unknown-linux-gnu",
) -> Transformed:
    """Give stages in canonical form loops that suit a processor, by schedule primitives.

    Args:
        module: What to change.
        cpu: The processor, as LLVM names it: text. The default is empty.
        features: CPU features in LLVM's notation: text. The default is +avx2,+fma.
        triple: The target, as LLVM names it: text. The default is x86_64-unknown-linux-gnu.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def cancel_layout(
    module: Module,
) -> Transformed:
    """Remove layout conversions that undo each other, and make one of those in a row.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def collapse_axes(
    module: Module,
) -> Transformed:
    """Make one axis of axes of open sizes that all accesses of a function walk as one.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def compact_buffer(
    module: Module,
) -> Transformed:
    """Allocate buffers where they are used, with the cells that live at once; blocks must be lowered.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def count_warp_accesses(
    module: Module,
    *,
    banks: int = 32,
    lanes: int = 32,
    segment: int = 128,
    word: int = 4,
) -> Transformed:
    """Say of the accesses of threads which bank conflicts they have, and how many segments they touch.

    Args:
        module: What to change.
        banks: Banks of shared memory: a number from 0 to 1024. The default is 32.
        lanes: Threads of a warp: a number from 0 to 1024. The default is 32.
        segment: Bytes that global memory moves at once: a number from 0 to 4096. The default is 128.
        word: Bytes of a word of a bank: a number from 0 to 64. The default is 4.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def expand_products(
    module: Module,
    *,
    cpu: str = "",
    features: str = "+avx2,+fma",
    triple: str = "x86_64-unknown-linux-gnu",
) -> Transformed:
    """Turn products of integers less zero points into products that instructions compute.

    Args:
        module: What to change.
        cpu: The processor, as LLVM names it: text. The default is empty.
        features: CPU features in LLVM's notation: text. The default is +avx2,+fma.
        triple: The target, as LLVM names it: text. The default is x86_64-unknown-linux-gnu.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def flatten_buffer(
    module: Module,
) -> Transformed:
    """One index for each physical axis of a buffer; blocks must be lowered.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def flow_layout(
    module: Module,
    *,
    outputs: Literal["logical", "physical"] = "logical",
    policy: Literal["none", "nchw16c", "nchw8c", "nchw4c", "nhwc"] = "none",
) -> Transformed:
    """Move layout conversions through the graph to where they move the fewest bytes.

    Args:
        module: What to change.
        outputs: Results are logical, or physical with anything in the padding: logical or physical. The default is logical.
        policy: The layout of all convolutions: none, nchw16c, nchw8c, nchw4c or nhwc. The default is none.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def fold_constant(
    module: Module,
    *,
    growth: int = 1048576,
) -> Transformed:
    """Run calls of constants now.

    Args:
        module: What to change.
        growth: Bytes by which a result may exceed its arguments: a number from 0 to 4294967295. The default is 1048576.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def fuse(
    module: Module,
) -> Transformed:
    """Join elementwise work with the functions that make its operands.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def hoist_expression(
    module: Module,
    *,
    hoisted_conditionals: int = 7,
    hoisted_let_bindings: int = 7,
) -> Transformed:
    """Move conditions and let bindings out of the loops that they do not depend on.

    Args:
        module: What to change.
        hoisted_conditionals: 1 if statements + 2 if expressions + 4 other conditions + 8 using threads: a number from 0 to 15. The default is 7.
        hoisted_let_bindings: 1 those that conditions need + 2 let statements + 4 let expressions: a number from 0 to 7. The default is 7.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def hoist_if(
    module: Module,
    *,
    support_block_scope_hoisting: bool = False,
) -> Transformed:
    """Move the conditions of if statements out of the loops that they do not depend on.

    Args:
        module: What to change.
        support_block_scope_hoisting: Also conditions that depend on a thread: 1 or 0. The default is 0.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def inline(
    module: Module,
) -> Transformed:
    """Substitute spatial stages into their consumers where that repeats no work.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def integer_products(
    module: Module,
) -> Transformed:
    """Make products of numbers that 8-bit integers stand for products of these integers.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def lay_out_shared(
    module: Module,
    *,
    banks: int = 32,
    lanes: int = 32,
    word: int = 4,
) -> Transformed:
    """Give buffers in shared memory layouts in which the lanes of a warp meet in no bank, by schedule primitives.

    Args:
        module: What to change.
        banks: Banks of shared memory: a number from 0 to 1024. The default is 32.
        lanes: Threads of a warp: a number from 0 to 1024. The default is 32.
        word: Bytes of a word of a bank: a number from 0 to 64. The default is 4.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def legalize(
    module: Module,
) -> Transformed:
    """Bring graph functions into the form that memory planning needs.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def lift_layout(
    module: Module,
    *,
    padding: Literal["value", "undef", "none"] = "value",
) -> Transformed:
    """Move marked conversions at the edges of functions into the graph.

    Args:
        module: What to change.
        padding: What functions are told of it: what it holds, that it may be read, or nothing: value, undef or none. The default is value.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def lift_scratch(
    module: Module,
) -> Transformed:
    """Turn allocations outside of parallel work into parameters; buffers must be flat.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def loop_partition(
    module: Module,
    *,
    partition_const_loop: bool = False,
    no_unroll_loop_with_extent_one: bool = False,
    unroll_loop_with_partition_hint_no_interval: bool = False,
) -> Transformed:
    """Take loops apart at their hints and T.likely, so that most of them has no guards.

    Args:
        module: What to change.
        partition_const_loop: Also loops with constant bounds, at their conditions in T.likely: 1 or 0. The default is 0.
        no_unroll_loop_with_extent_one: Keep loops of one iteration: 1 or 0. The default is 0.
        unroll_loop_with_partition_hint_no_interval: Unroll loops with a hint that no condition takes apart: 1 or 0. The default is 0.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def lower(
    module: Module,
    *,
    unchecked: bool = False,
) -> Transformed:
    """All that code generation needs, from lower_blocks to lift_scratch.

    Args:
        module: What to change.
        unchecked: No assertions where an access is not proved to be in range: 1 or 0. The default is 0.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def lower_blocks(
    module: Module,
) -> Transformed:
    """Turn blocks into plain statements.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def lower_opaque_block(
    module: Module,
) -> Transformed:
    """Lower_blocks, without loops of one iteration, with rows aligned and annotations.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def mark_free_layout(
    module: Module,
) -> Transformed:
    """Say which parameters are constants in every call, for `auto_schedule` to pack.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def merge_adjacent_loops(
    module: Module,
) -> Transformed:
    """Let loops over the same range run together where no dependent iterations swap.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def place_parts(
    module: Module,
    *,
    all: bool = False,
) -> Transformed:
    """Compute the parts of a concatenation where the whole lies, and read slices where they lie.

    Args:
        module: What to change.
        all: Place parts also where their rows are short or no longer aligned: 1 or 0. The default is 0.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def plan_layout(
    module: Module,
    *,
    cpu: str = "",
    features: str = "+avx2,+fma",
    io: Literal["logical", "physical"] = "logical",
    triple: str = "x86_64-unknown-linux-gnu",
) -> Transformed:
    """The layouts of whole graphs that are estimated to be the fastest for a processor.

    Args:
        module: What to change.
        cpu: The processor, as LLVM names it: text. The default is empty.
        features: CPU features in LLVM's notation: text. The default is +avx2,+fma.
        io: Inputs and outputs are logical, or physical with zeros in the padding of inputs: logical or physical. The default is logical.
        triple: The target, as LLVM names it: text. The default is x86_64-unknown-linux-gnu.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def reduce_loop_extents(
    module: Module,
) -> Transformed:
    """Run loops only over the iterations that their guards let do something.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def refine(
    module: Module,
) -> Transformed:
    """Derive the indices, guards, ranges and allocations that a schedule leaves open; blocks must be lowered.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def remove_assume(
    module: Module,
) -> Transformed:
    """Drop assumptions.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def remove_branching_through_overcompute(
    module: Module,
    *,
    finite: bool = False,
    wrap_indices: bool = False,
    use_dataflow_analysis: bool = True,
) -> Transformed:
    """Remove guards whose bodies may run everywhere, because that changes nothing.

    Args:
        module: What to change.
        finite: Floats in memory are neither infinite nor NaN, so that zero times one is zero: 1 or 0. The default is 0.
        wrap_indices: Take indices modulo the extent where only their range is in the way: 1 or 0. The default is 0.
        use_dataflow_analysis: No effect: always done: 1 or 0. The default is 1.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def remove_no_op(
    module: Module,
    *,
    use_dataflow_analysis: bool = True,
    max_simplification_steps: int = 0,
    ignore_profiler_call: bool = False,
) -> Transformed:
    """Remove stores whose values are not used or that change nothing, and loops and blocks without a body.

    Args:
        module: What to change.
        use_dataflow_analysis: Follow values through memory, and look at more than the text: 1 or 0. The default is 1.
        max_simplification_steps: No effect: every question has a quota of its own: a number from 0 to 4294967295. The default is 0.
        ignore_profiler_call: No effect: 1 or 0. The default is 0.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def remove_overcompute_through_branching(
    module: Module,
) -> Transformed:
    """Put guards around statements that change nothing where the guards are false.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def remove_store_undef(
    module: Module,
) -> Transformed:
    """Drop stores of arbitrary values; what is arbitrary elsewhere becomes zero.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def renormalize_split_pattern(
    module: Module,
) -> Transformed:
    """Quotients and remainders of flat indices by their parts; statements stay.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def repeat_rows(
    module: Module,
) -> Transformed:
    """Rows that tiles of local memory have too many compute the last row again, without a guard.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def schedule_stages(
    module: Module,
    *,
    cpu: str = "",
    features: str = "+avx2,+fma",
    triple: str = "x86_64-unknown-linux-gnu",
) -> Transformed:
    """Give stages that are no contractions in tiles loops that suit a processor.

    Args:
        module: What to change.
        cpu: The processor, as LLVM names it: text. The default is empty.
        features: CPU features in LLVM's notation: text. The default is +avx2,+fma.
        triple: The target, as LLVM names it: text. The default is x86_64-unknown-linux-gnu.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def simplify(
    module: Module,
    *,
    transitively_prove_inequalities: bool = True,
    convert_boolean_to_and_of_ors: bool = False,
    apply_constraints_to_boolean_branches: bool = True,
    propagate_knowns_to_prove_conditional: bool = True,
    propagate_knowns_to_simplify_expressions: bool = True,
) -> Transformed:
    """Simplify indices, conditions, branches and loops by what is known at each place.

    Args:
        module: What to change.
        transitively_prove_inequalities: No effect: always done: 1 or 0. The default is 1.
        convert_boolean_to_and_of_ors: No effect: the shortest form is taken: 1 or 0. The default is 0.
        apply_constraints_to_boolean_branches: No effect: always done: 1 or 0. The default is 1.
        propagate_knowns_to_prove_conditional: What memory is known to hold decides conditions: 1 or 0. The default is 1.
        propagate_knowns_to_simplify_expressions: Known values of memory replace loads: 1 or 0. The default is 1.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def storage_flatten(
    module: Module,
    *,
    cache_line_size: int = 64,
) -> Transformed:
    """Flatten_buffer for the functions that say from_legacy_te_schedule, as TVM had it.

    Args:
        module: What to change.
        cache_line_size: Taken for TVM's sake; has no effect: a number from 0 to 65536. The default is 64.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def unroll_loop(
    module: Module,
    *,
    copies: int = 256,
) -> Transformed:
    """Turn unrolled loops from zero to a number into a statement for each iteration.

    Args:
        module: What to change.
        copies: The most copies of what loops inside of one another repeat: a number from 0 to 65536. The default is 256.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def use_assume(
    module: Module,
) -> Transformed:
    """Do what assumptions allow, as simplify and overcompute do it, and drop them.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def use_assume_to_reduce_branches(
    module: Module,
) -> Transformed:
    """Remove_branching_through_overcompute, by the name that TVM has for a part of it.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def use_border(
    module: Module,
) -> Transformed:
    """Guards of reads from textures go where the border gives the same.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def vectorize_loop(
    module: Module,
) -> Transformed:
    """Turn vectorised loops into vector expressions; buffers must be flat.

    Args:
        module: What to change.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """

def winograd(
    module: Module,
    *,
    cpu: str = "",
    error: str = "1e-3",
    features: str = "+avx2,+fma",
    tile: Literal["auto", "2", "4"] = "auto",
    triple: str = "x86_64-unknown-linux-gnu",
) -> Transformed:
    """Compute convolutions of 3 x 3 pixels by transforms: fewer products, within an error.

    Args:
        module: What to change.
        cpu: The processor, as LLVM names it: text. The default is empty.
        error: The largest error of a convolution in samples, as a part of its largest result: text. The default is 1e-3.
        features: CPU features in LLVM's notation: text. The default is +avx2,+fma.
        tile: Results of a tile along an axis: what is estimated to be the fastest, or a number: auto, 2 or 4. The default is auto.
        triple: The target, as LLVM names it: text. The default is x86_64-unknown-linux-gnu.

    Raises:
        tilewright.Error: where it refuses, or an option does not fit.
    """
