"""An ONNX model whose weights are others, made from its bytes without the package ``onnx``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ._ort_metadata import Buffer, fields, opened, weight_name
from ._ort_values import element_number
from ._types import Path
from .errors import InputError, UnsupportedError

__all__ = ["with_weights"]


def _number(value: int) -> bytes:
    """A number, seven bits a byte."""
    made = bytearray()
    while value >= 128:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def _bytes(number: int, content: bytes) -> bytes:
    """A field that holds bytes."""
    return _number(number << 3 | 2) + _number(len(content)) + content


def _weight(name: str, array: np.ndarray[Any, Any]) -> bytes:
    """A weight as a field of a graph."""
    element = _number(2 << 3) + _number(element_number(array.dtype))
    extents = b"".join(_number(1 << 3) + _number(extent) for extent in array.shape)
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return _bytes(5, extents + element + _bytes(8, name.encode()) + _bytes(9, raw))


def _is_elsewhere(data: Buffer, start: int, end: int) -> bool:
    """Whether the elements of a weight are in a file beside the model."""
    return any(number == 14 and value == 1 for number, value, _, _ in fields(data, start, end))


def with_weights(
    model: Path | bytes, taken: Collection[str], given: Mapping[str, np.ndarray[Any, Any]]
) -> bytes:
    """The content of a model without some weights, and with others in their place.

    Args:
        model: The path of a file, or its content.
        taken: Weights that it loses: inputs of these names have to be given.
        given: Weights that get these elements.

    Raises:
        tilewright.InputError: for weights that the model does not have.
        tilewright.UnsupportedError: if weights that stay are in files beside the model.
    """
    changed = {*taken, *given}
    found = set()
    made = []
    with opened(model) as (data, end):
        at = 0
        for number, _, start, stop in fields(data, 0, end):
            if number != 7:
                made.append(bytes(data[at:stop]))
            else:
                graph = []
                inner = start
                for part, _, a, b in fields(data, start, stop):
                    name = weight_name(data, a, b) if part == 5 else None
                    if name in changed:
                        found.add(name)
                    elif part == 5 and _is_elsewhere(data, a, b):
                        raise UnsupportedError(
                            f"weights are given, and the model has others (`{name}`) in a file beside it"
                        )
                    else:
                        graph.append(bytes(data[inner:b]))
                    inner = b
                made.append(_bytes(7, b"".join(graph)))
            at = stop
    missing = sorted(changed - found)
    if missing:
        raise InputError(f"the model has no weight `{missing[0]}`")
    made.append(_bytes(7, b"".join(_weight(name, array) for name, array in given.items())))
    return b"".join(made)
