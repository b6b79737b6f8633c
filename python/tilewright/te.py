"""Tensor expressions: a tensor is what each of its elements is.

>>> import numpy as np
>>> from tilewright import te
>>> a = te.placeholder("A", (5, 7))
>>> b = te.placeholder("B", (7, 3))
>>> k = te.reduce_axis(7, "k")
>>> c = te.compute("C", (5, 3), lambda i, j: te.sum(a[i, k] * b[k, j], k))
>>> d = te.compute("D", (5, 3), lambda i, j: te.maximum(c[i, j], 0))
>>> matmul = te.func([a, b], [d])
>>> matmul(np.ones((5, 7), np.float32), np.ones((7, 3), np.float32))[0]
array([7., 7., 7.], dtype=float32)

How its tensors lie in memory is said by a schedule:

>>> s = te.create_schedule([a, b], [c])
>>> s[a].transform_layout(lambda i, j: [i // 4, j, i % 4])
>>> s.module.inputs[0].shape
(2, 7, 4)
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Union

from . import _native
from ._native import Axis, Expr, Output, Reduction, Stage, Tensor
from .errors import InputError
from .function import Function
from .module import Module
from .schedule import AXIS_SEPARATOR, Schedule

__all__ = [
    "AXIS_SEPARATOR",
    "Axis",
    "Expr",
    "Output",
    "Reduction",
    "Stage",
    "TeSchedule",
    "Tensor",
    "axis",
    "cast",
    "compute",
    "create_schedule",
    "func",
    "max",
    "maximum",
    "min",
    "minimum",
    "module",
    "placeholder",
    "prod",
    "reduce_axis",
    "scan_axis",
    "select",
    "stage",
    "stages",
    "sum",
]

Value = Union[Expr, Axis, float, int, bool]


def placeholder(name: str, shape: Sequence[int], dtype: str = "float32") -> Tensor:
    """An input: ``tensor[i, j]`` is its element."""
    return _native.placeholder(name, list(shape), dtype)


def axis(extent: int, name: str) -> Axis:
    """An axis along which every position writes elements of its own."""
    return _native.te_axis(extent, name, "spatial")


def reduce_axis(extent: int, name: str) -> Axis:
    """An axis whose positions are combined."""
    return _native.te_axis(extent, name, "reduce")


def scan_axis(extent: int, name: str) -> Axis:
    """An axis whose positions run one after the other, each seeing what the one before wrote."""
    return _native.te_axis(extent, name, "scan")


def _reduction(how: str, value: Value, axes: Axis | Iterable[Axis]) -> Reduction:
    return _native.te_reduce(how, value, [axes] if isinstance(axes, Axis) else list(axes))


def sum(value: Value, axes: Axis | Iterable[Axis]) -> Reduction:
    """The sum over axes, in the type of the value; nothing gives 0."""
    return _reduction("sum", value, axes)


def prod(value: Value, axes: Axis | Iterable[Axis]) -> Reduction:
    """The product over axes; nothing gives 1."""
    return _reduction("prod", value, axes)


def max(value: Value, axes: Axis | Iterable[Axis]) -> Reduction:
    """The largest over axes; ``NaN`` if any is."""
    return _reduction("max", value, axes)


def min(value: Value, axes: Axis | Iterable[Axis]) -> Reduction:
    """The smallest over axes; ``NaN`` if any is."""
    return _reduction("min", value, axes)


def maximum(a: Expr, b: Value) -> Expr:
    """The larger of two."""
    return a.max(b)


def minimum(a: Expr, b: Value) -> Expr:
    """The smaller of two."""
    return a.min(b)


def select(condition: Value, a: Value, b: Value) -> Expr:
    """``a`` where the condition holds, else ``b``; only what is chosen is evaluated."""
    return _native.select(condition, a, b)


def cast(value: Expr, dtype: str) -> Expr:
    """The value as another type."""
    return value.astype(dtype)


def compute(
    name: str,
    shape: Sequence[int | Axis],
    function: Callable[..., Value | Reduction],
) -> Tensor:
    """The tensor whose element at some indices is what the function gives for them.

    Args:
        name: Its name.
        shape: Its extents, or axes with names of their own.
        function: Takes one index an axis, or all with ``*indices``.

    Raises:
        tilewright.InputError: if the function takes another number of indices.
        TypeError: if it gives what is no value.
    """
    axes = [d if isinstance(d, Axis) else axis(d, f"i{k}") for k, d in enumerate(shape)]
    try:
        inspect.signature(function).bind(*axes)
    except TypeError as error:
        raise InputError(f"tensor `{name}`: the function for {len(axes)} axes: {error}") from error
    return _native.te_compute(name, axes, function)


def stage(out: Output, axes: Sequence[Axis], indices: Sequence[Value], value: Value | Reduction) -> Stage:
    """Stores a value at indices of a tensor, at each position of the axes."""
    return _native.te_stage(out, list(axes), list(indices), value)


def stages(
    name: str,
    shape: Sequence[int],
    dtype: str,
    function: Callable[[Output], Sequence[Stage]],
) -> Tensor:
    """A tensor that several stages write, one after the other; together they write every element.

    >>> from tilewright import te
    >>> a, b = te.placeholder("a", (7,)), te.placeholder("b", (7,))
    >>> def rows(out):
    ...     j, k = te.axis(7, "j"), te.axis(7, "k")
    ...     return [te.stage(out, [j], [0, j], a[j]), te.stage(out, [k], [1, k], b[k])]
    >>> te.func([a, b], [te.stages("both", (2, 7), "float32", rows)])([1] * 7, [2] * 7)[:, 0]
    array([1., 2.], dtype=float32)
    """
    return _native.te_stages(name, list(shape), dtype, function)


def module(inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, name: str = "main") -> Module:
    """The function that computes the outputs from the inputs, as a module.

    Raises:
        tilewright.InputError: with the name of the tensor, for an index too many, a type that does
            not fit, an input that is missing.
    """
    return Module(_native.te_module(name, list(inputs), list(outputs)))


def func(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, name: str = "main", **options: Any
) -> Function:
    """The same, to be called on arrays; options are those of :meth:`tilewright.Module.compile`."""
    return Function(module(inputs, outputs, name=name), **options)


class TeStage:
    """A tensor under a schedule."""

    def __init__(self, schedule: TeSchedule, tensor: Tensor) -> None:
        self._schedule, self._tensor = schedule, tensor

    def transform_layout(self, index_map: Callable[..., Any], pad_value: Any = None) -> None:
        """Lays the tensor out by a function from logical to physical indices.

        ``AXIS_SEPARATOR`` among what the function gives groups them into physical axes.

        Raises:
            tilewright.RefusedError: where the map is none, or the layout does not fit.
        """
        name = self._tensor.name
        blocks = self._schedule._raw.blocks_of("main", name)
        if not blocks:
            raise InputError(f"nothing uses `{name}`")
        self._schedule.transform_layout(blocks[0], name, index_map, pad_value)


class TeSchedule(Schedule):
    """The schedule of tensor expressions: ``s[tensor]`` is a tensor under it."""

    def __getitem__(self, tensor: Tensor) -> TeStage:
        return TeStage(self, tensor)


def create_schedule(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> TeSchedule:
    """The schedule of the function that computes the outputs from the inputs.

    It has no callers yet, so that inputs and outputs may be laid out, too.
    """
    return TeSchedule(module(inputs, outputs), change_interface=True)


def _intrinsic(name: str, arity: int) -> Callable[..., Expr]:
    def function(*args: Value) -> Expr:
        return _native.intrinsic(name, *args)

    words = "an expression" if arity == 1 else f"{arity} expressions"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of {words}."
    return function


_INTRINSICS = {name: _intrinsic(name, arity) for name, arity in _native.intrinsics()}


def __getattr__(name: str) -> Callable[..., Expr]:
    """Every built-in function of the compiler: ``te.exp``, ``te.tanh``, ..."""
    try:
        return _INTRINSICS[name]
    except KeyError:
        raise AttributeError(f"module `tilewright.te` has no attribute `{name}`") from None


def __dir__() -> list[str]:
    return sorted({*__all__, *_INTRINSICS})
