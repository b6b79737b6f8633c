"""Schedules: how the loops of a function run, and how its buffers lie in memory."""

# Written by `python -m tilewright._stubs` from the tables of the compiler.

from collections.abc import Sequence
from typing import Any, Callable

from . import _native
from ._native import Block, Expr, Lambda, Loop
from .module import Module

__all__ = ["AXIS_SEPARATOR", "Schedule"]

class _Separator: ...

AXIS_SEPARATOR: _Separator

def traced(function: Callable[..., Any]) -> Lambda:
    """A Python function of indices as an index map or a pad value.

    Raises:
        tilewright.InputError: if the number of its parameters is not fixed.
    """

class Schedule:
    """A module under a schedule; each primitive changes it, or refuses and changes nothing.

    Args:
        module: The module to begin with.
        change_interface: Whether parameters of functions may be laid out, too. Who calls them then
            has to follow.
    """

    _raw: _native.Schedule
    def __init__(self, module: Module, *, change_interface: bool = False) -> None: ...
    @property
    def module(self) -> Module:
        """The module as it is now."""

    @property
    def trace(self) -> str:
        """What was done, as a script: :meth:`run_script` runs it again."""

    def run_script(self, text: str, *, name: str = "<schedule>") -> None:
        """Runs a schedule script, such as a trace.

        Raises:
            tilewright.Error: those of reading it and of the primitives, with the place in the text.
                What was done before stays.
        """

    def _repr_html_(self) -> str: ...

    def get_block(self, name: str, func_name: str | None = ...) -> Block:
        """The block of this name, in the named function; without a name, in `main` or in the only tensor function.

        Args:
            name: A string.
            func_name: A string or None. The default is None.

        Returns:
            The block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    get_sblock = get_block

    def get_loops(self, block: Block | str) -> list[Loop]:
        """The loops around a block up to the block that encloses it, outermost first.

        Args:
            block: A block.

        Returns:
            A list of loops.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def work_on(self, func_name: str) -> None:
        """Says which function comes next. Traces say it; every block and loop carries its function, so that nothing follows from it.

        Args:
            func_name: A string.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def split(
        self,
        loop: Loop | str,
        factors: Sequence[int | Expr | None],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[Loop]:
        """Splits a loop into as many as there are factors, outermost first; one factor may be left open and is then the smallest that covers the loop. Returns the new loops.

        Args:
            loop: A loop.
            factors: A list, each a number or None.
            preserve_unit_iters: A switch of TVM's traces; True is what happens anyway.
            disable_predication: A switch of TVM's traces; False is what happens anyway.

        Returns:
            A list of loops.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def fuse(
        self,
        *loops: Sequence[Loop | str] | Loop | str,
        preserve_unit_iters: bool = True,
    ) -> Loop:
        """Fuses loops that are directly inside one another, outermost first, into one.

        Args:
            loops: A list, each a loop.
            preserve_unit_iters: A switch of TVM's traces; True is what happens anyway.

        Returns:
            The loop.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def reorder(self, *loops: Sequence[Loop | str] | Loop | str) -> None:
        """Puts loops of one perfect nest into the given order, outermost first; loops between them that are not named stay where they are.

        Args:
            loops: A list, each a loop.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def parallel(self, loop: Loop | str) -> None:
        """Runs the iterations of a loop on several threads.

        Args:
            loop: A loop.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def vectorize(self, loop: Loop | str) -> None:
        """Runs the iterations of a loop as lanes of vectors. Updates of one cell by one operator that commutes may be in different lanes.

        Args:
            loop: A loop.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def unroll(self, loop: Loop | str) -> None:
        """Makes a copy of the body for each iteration of a loop.

        Args:
            loop: A loop.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def add_unit_loop(self, block_or_loop: Block | Loop | str) -> Loop:
        """Puts a loop of one iteration around a block or a loop. Returns it.

        Args:
            block_or_loop: A block or a loop. Also called block, loop.

        Returns:
            The loop.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def bind(self, loop: Loop | str, thread_axis: str) -> None:
        """Binds a loop to a thread axis such as `threadIdx.x`.

        Args:
            loop: A loop.
            thread_axis: A string.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def transform_loops(
        self,
        loops: Sequence[Loop | str] | Loop | str,
        index_map: Callable[..., Any] | Lambda,
    ) -> list[Loop]:
        """Lets loops that are directly inside one another, outermost first, run over the physical box of an index map of their variables. Returns the new loops.

        Args:
            loops: A list, each a loop.
            index_map: A lambda.

        Returns:
            A list of loops.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def get_inner_loops(self, block: Block | str) -> list[Loop]:
        """The loops inside a block, in the order of the text.

        Args:
            block: A block.

        Returns:
            A list of loops.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def fission(self, loop: Loop | str, at: int) -> list[Loop]:
        """Splits the body of a loop in two: the statements before position `at`, and the rest, each in a loop of its own. The second one keeps the loop's variable.

        Args:
            loop: A loop.
            at: A position from zero.

        Returns:
            A list of loops.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def join_loops(self, *loops: Sequence[Loop | str] | Loop | str) -> Loop:
        """Joins consecutive loops of one sequence, in their order, into one loop over the iterations of all, with a branch for each. The order of the iterations stays: this is the inverse of `loop_partition`. Returns the loop.

        Args:
            loops: A list, each a loop.

        Returns:
            The loop.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def compute_at(
        self,
        block: Block | str,
        loop: Loop | str,
        preserve_unit_loops: bool = ...,
        index: int = ...,
    ) -> None:
        """Moves a block under a loop, in front of the first that reads its buffer there; it then runs for what is read in one iteration.

        Args:
            block: A block.
            loop: A loop.
            preserve_unit_loops: A truth value. The default is False.
            index: A position, -1 (as late as it may) or -2 (as early as it may). The default is -1.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def reverse_compute_at(
        self,
        block: Block | str,
        loop: Loop | str,
        preserve_unit_loops: bool = ...,
        index: int = ...,
    ) -> None:
        """Moves a block under a loop, behind the last that writes what it reads there; it then runs for what is written in one iteration.

        Args:
            block: A block.
            loop: A loop.
            preserve_unit_loops: A truth value. The default is False.
            index: A position, -1 (as late as it may) or -2 (as early as it may). The default is -1.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def compute_inline(self, block: Block | str) -> None:
        """Puts the value of a block where its buffer is read; the block and the buffer go.

        Args:
            block: A block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def reverse_compute_inline(self, block: Block | str) -> None:
        """Inlines a block into the block that writes its input; the block and the buffer between them go.

        Args:
            block: A block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def cache_read(
        self,
        block: Block | str,
        read_buffer_index: int | str | tuple[str, int],
        storage_scope: str | None = ...,
        consumer_blocks: Sequence[Block | str] | Block | str = ...,
    ) -> Block:
        """Copies a buffer that a block reads into a cache of a storage scope, and lets the consumers read from there: the given blocks, or every block of the scope that only reads the buffer between the same two writes. Returns the block that copies.

        Args:
            block: A block.
            read_buffer_index: A position from zero, `("read", n)`, `("write", n)` or a name. Also called buffer, buffer_index.
            storage_scope: A string or None. The default is None.
            consumer_blocks: A list, each a block. The default is [].

        Returns:
            The block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def cache_write(
        self,
        block: Block | str,
        write_buffer_index: int | str | tuple[str, int],
        storage_scope: str | None = ...,
        consumer_blocks: Sequence[Block | str] | Block | str = ...,
    ) -> Block:
        """Lets a block write a cache of a storage scope, which is then copied to the buffer; the given consumers read the cache. Returns the block that copies.

        Args:
            block: A block.
            write_buffer_index: A position from zero, `("read", n)`, `("write", n)` or a name. Also called buffer, buffer_index.
            storage_scope: A string or None. The default is None.
            consumer_blocks: A list, each a block. The default is [].

        Returns:
            The block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def cache_inplace(
        self,
        block: Block | str,
        read_buffer_index: int | str | tuple[str, int],
        storage_scope: str | None = ...,
    ) -> list[Block]:
        """Lets a block work on a cache of a storage scope that is filled before it and copied back after it. Returns the two blocks that copy.

        Args:
            block: A block.
            read_buffer_index: A position from zero, `("read", n)`, `("write", n)` or a name. Also called buffer, buffer_index.
            storage_scope: A string or None. The default is None.

        Returns:
            A list of blocks.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def reindex_cache_read(
        self,
        block: Block | str,
        read_buffer_index: int | str | tuple[str, int],
        storage_scope: str | None,
        index_map: Callable[..., Any] | Lambda,
    ) -> Block:
        """Copies the part of a buffer that a block reads into a cache that is indexed by a map of the block's iteration variables. Returns the block that copies.

        Args:
            block: A block.
            read_buffer_index: A position from zero, `("read", n)`, `("write", n)` or a name. Also called buffer, buffer_index.
            storage_scope: A string or None. The default is None.
            index_map: A lambda.

        Returns:
            The block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def reindex_cache_write(
        self,
        block: Block | str,
        write_buffer_index: int | str | tuple[str, int],
        storage_scope: str | None,
        index_map: Callable[..., Any] | Lambda,
    ) -> Block:
        """Lets a block write a cache that is indexed by a map of its iteration variables, and copies that to the buffer. Returns the block that copies.

        Args:
            block: A block.
            write_buffer_index: A position from zero, `("read", n)`, `("write", n)` or a name. Also called buffer, buffer_index.
            storage_scope: A string or None. The default is None.
            index_map: A lambda.

        Returns:
            The block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def decompose_reduction(self, block: Block | str, loop: Loop | str) -> Block:
        """Moves the initialisation of a reduction into a block `NAME_init` of its own before a loop. Returns that block. The rest is called `NAME_update`, and references of a script to the old block mean it.

        Args:
            block: A block.
            loop: A loop.

        Returns:
            The block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def rfactor(self, loop: Loop | str, factor_axis: int) -> Block:
        """Lets the reduction under a loop keep a partial result for each iteration, in a new axis of a new buffer (counted from the end where negative), and combine those afterwards. Returns the block that computes the partial results, `NAME_rf`; where some may have nothing to combine, they begin in a block before it, `NAME_rf_init`.

        Args:
            loop: A loop.
            factor_axis: A whole number.

        Returns:
            The block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def tensorize(
        self,
        block_or_loop: Block | Loop | str,
        tensor_intrin: str,
        preserve_unit_iters: bool = True,
    ) -> None:
        """Puts an instruction in the place of a loop or block, in a block that is called after the first one there, `NAME_o`.

        Args:
            block_or_loop: A block or a loop. Also called block, loop.
            tensor_intrin: A string.
            preserve_unit_iters: A switch of TVM's traces; True is what happens anyway.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def transform_layout(
        self,
        block: Block | str,
        buffer: int | str | tuple[str, int],
        index_map: Callable[..., Any] | Lambda,
        pad_value: float | Expr | Callable[..., Any] | Lambda | None = ...,
        assume_injective_transform: bool = ...,
    ) -> None:
        """Lays a buffer of a block out by an index map, everywhere in the function. What padding holds is `None` where nothing accesses it, a number, an expression, or a lambda over the physical indices.

        Args:
            block: A block.
            buffer: A position from zero, `("read", n)`, `("write", n)` or a name.
            index_map: A lambda.
            pad_value: A number, an expression or a lambda. The default is None.
            assume_injective_transform: A truth value. The default is False.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def set_axis_separator(
        self,
        block: Block | str,
        buffer: int | str | tuple[str, int],
        axis_separators: Sequence[int],
    ) -> None:
        """Groups the axes of a buffer into physical axes: each separator is a position between axes where one ends. Views of the buffer follow.

        Args:
            block: A block.
            buffer: A position from zero, `("read", n)`, `("write", n)` or a name.
            axis_separators: A list, each a position from zero.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def transform_block_layout(
        self,
        block: Block | str,
        index_map: Callable[..., Any] | Lambda,
    ) -> None:
        """Maps the iteration variables of a block and the loops around it.

        Args:
            block: A block.
            index_map: A lambda.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def sequential_buffer_access(
        self,
        block: Block | str,
        buffer: int | str | tuple[str, int],
    ) -> list[Loop]:
        """Rewrites the loops of a block so that they follow the axes of a buffer. Returns the loops.

        Args:
            block: A block.
            buffer: A position from zero, `("read", n)`, `("write", n)` or a name.

        Returns:
            A list of loops.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def pad_einsum(self, block: Block | str, padding: Sequence[int]) -> None:
        """Rounds the extent of each iteration variable of a block up to a multiple, with padded copies of the buffers for which that makes a difference.

        Args:
            block: A block.
            padding: A list, each a whole number.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def decompose_padding(self, block: Block | str, loop: Loop | str) -> Block:
        """Splits a block that copies with padding at a loop into a fill with the pad value and a copy of the inside. Returns the block that fills; the copy keeps the name.

        Args:
            block: A block.
            loop: A loop.

        Returns:
            The block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def hoist_expression(
        self,
        block: Block | str,
        hoisted_conditionals: int = ...,
        hoisted_let_bindings: int = ...,
    ) -> None:
        """Moves conditions and bindings of a block's body out of the loops in it that they do not depend on. The bits say from where: those of the pass of this name.

        Args:
            block: A block.
            hoisted_conditionals: A whole number. The default is 7.
            hoisted_let_bindings: A whole number. The default is 7.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def reduce_loop_extents(self, block: Block | str) -> None:
        """Lets the loops of a block's body run only over the iterations that do something.

        Args:
            block: A block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def loop_partition(
        self,
        loop: Loop | str,
        factors: Sequence[int | Expr | None] | None = ...,
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[Loop]:
        """Splits a loop into consecutive loops: of `factors` iterations, one of which may be open, and of the rest; without factors, at the places where conditions in it change. Returns the parts, in order.

        Args:
            loop: A loop.
            factors: A list, each a number or None or None. The default is None.
            preserve_unit_iters: A switch of TVM's traces; True is what happens anyway.
            disable_predication: A switch of TVM's traces; False is what happens anyway.

        Returns:
            A list of loops.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def loop_versions(
        self,
        loop: Loop | str,
        value: int | Expr,
        cases: Sequence[int],
    ) -> list[Loop]:
        """Makes versions of a loop for values that an expression of sizes and of loops around it may have, and one for any others where there may be some; each runs where the expression has its value, and loops in it that do nothing from the iteration of that number on end there. Returns the loops, in order.

        Args:
            loop: A loop.
            value: A number.
            cases: A list, each a whole number.

        Returns:
            A list of loops.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def merge_loops(self, *loops: Sequence[Loop | str] | Loop | str) -> Loop:
        """Lets loops over the same range, in one sequence, run together as the first of them.

        Args:
            loops: A list, each a loop.

        Returns:
            The loop.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def remove_branching_through_overcompute(
        self,
        block: Block | str,
        wrap_indices: bool = ...,
        finite: bool = ...,
    ) -> None:
        """Removes guards in and around a block where running without them changes nothing. With `wrap_indices`, an index that would leave its range is taken modulo the extent; `finite` says that no float in memory is infinite or `NaN`.

        Args:
            block: A block.
            wrap_indices: A truth value. The default is False.
            finite: A truth value. The default is False.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def remove_overcompute_through_branching(self, block: Block | str) -> None:
        """Puts guards around loop bodies in a block that change nothing where the guards are false.

        Args:
            block: A block.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def set_scope(
        self,
        block: Block | str,
        buffer_index: int | str | tuple[str, int],
        storage_scope: str,
    ) -> None:
        """Puts a buffer that a block writes into another storage scope.

        Args:
            block: A block.
            buffer_index: A position from zero, `("read", n)`, `("write", n)` or a name. Also called buffer.
            storage_scope: A string.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def annotate(self, block_or_loop: Block | Loop | str, ann_key: str, ann_val: object) -> None:
        """Adds an annotation to a block or a loop, or replaces it.

        Args:
            block_or_loop: A block or a loop. Also called block, loop.
            ann_key: A string.
            ann_val: A constant.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """

    def unannotate(self, block_or_loop: Block | Loop | str, ann_key: str) -> None:
        """Removes an annotation of a block or a loop.

        Args:
            block_or_loop: A block or a loop. Also called block, loop.
            ann_key: A string.

        Raises:
            tilewright.RefusedError: where it would change what is computed.
        """
