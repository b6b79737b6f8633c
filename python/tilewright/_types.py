"""Types that several modules share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, Union

from .errors import InputError

#: A path of a file.
Path = Union[str, "os.PathLike[str]"]

#: A model: the path of its file, its bytes, or an ``onnx.ModelProto``.
Model = Any

#: An array: NumPy's, anything with ``__dlpack__`` in memory that the CPU can read, or what
#: ``numpy.asarray`` takes.
Array = Any

#: Is told what is going on, how many parts of it are done, and how many there are.
Progress = Callable[[str, int, int], None]

#: A size, or the least and the most that one may be that stays open.
Extent = Union[int, Tuple[int, int]]
Dims = Optional[Mapping[str, Extent]]
Shapes = Optional[Mapping[str, Sequence[int]]]
Values = Optional[Mapping[str, Array]]


class Port(NamedTuple):
    """An input or output.

    Sizes are numbers, or names where they are open; ``?`` is an open size without a name. The shape
    is ``None`` where not even the rank is known.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None


def port(raw: tuple[str, str, list[int | str] | None]) -> Port:
    """The port of what the extension gives."""
    name, dtype, shape = raw
    return Port(name, dtype, None if shape is None else tuple(shape))


def _extent(name: str, size: Extent) -> Extent:
    numbers = size if isinstance(size, tuple) else (size,)
    if len(numbers) > 2 or any(int(n) < 0 for n in numbers):
        what = "a number of at least 0, or the least and the most"
        raise InputError(f"the size of `{name}` is {what}, not {size}")
    if isinstance(size, tuple):
        least, most = size
        return int(least), int(most)
    return int(size)


def sizes(
    dims: Dims, shapes: Shapes, values: Values
) -> tuple[dict[str, Extent] | None, dict[str, list[int]] | None, dict[str, Array] | None]:
    """Sizes as the extension takes them."""
    return (
        None if dims is None else {str(name): _extent(name, size) for name, size in dims.items()},
        None if shapes is None else {str(n): [int(d) for d in s] for n, s in shapes.items()},
        None if values is None else dict(values),
    )


#: An argument of a primitive: its names, whether it takes the rest, what may be given in words, its
#: default as text.
Parameter = Tuple[List[str], bool, str, Optional[str]]

#: A primitive: name, other names, summary, arguments, switches with their values, what it returns, and
#: whether that is a list.
Primitive = Tuple[str, List[str], str, List[Parameter], List[Tuple[str, bool]], str, bool]

#: A pass: name, what it does, and for each option name, meaning, values in words, default as text.
Pass = Tuple[str, str, List[Tuple[str, str, str, str]]]
