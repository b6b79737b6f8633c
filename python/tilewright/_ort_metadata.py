"""What an ONNX file says of itself, read from its bytes without the package ``onnx``.

A message of protocol buffers is fields in a row: a key with number and kind, then a number or bytes.
Weights are passed over by their length.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Union

from ._ort_values import element_name
from ._types import Path
from .errors import ModelError

__all__ = ["ModelMetadata", "metadata", "port_types"]

_Bytes = Union[bytes, memoryview, mmap.mmap]


class ModelMetadata:
    """What a model says of itself.

    Attributes:
        producer_name: What wrote it.
        graph_name: The name of its graph.
        domain: Where it comes from.
        description: What it is.
        graph_description: What its graph is.
        version: Its number; the largest that there is where it has none.
        custom_metadata_map: What else it says, by name.
    """

    def __init__(self) -> None:
        self.producer_name = ""
        self.graph_name = ""
        self.domain = ""
        self.description = ""
        self.graph_description = ""
        self.version = 2**63 - 1
        self.custom_metadata_map: dict[str, str] = {}


def _number(data: _Bytes, at: int, end: int) -> tuple[int, int]:
    """The number at a place, seven bits a byte, and where it ends."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ModelError("the model is damaged: a number does not end")


def _fields(data: _Bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, value, start and end of each field; the value of a number, start and end of bytes."""
    at = start
    while at < end:
        key, at = _number(data, at, end)
        kind = key & 7
        if kind == 0:
            value, at = _number(data, at, end)
            yield key >> 3, value, at, at
            continue
        length = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            length, at = _number(data, at, end)
        if length is None or at + length > end:
            raise ModelError("the model is damaged: a field does not fit")
        yield key >> 3, 0, at, at + length
        at += length


def _text(data: _Bytes, start: int, end: int) -> str:
    return bytes(data[start:end]).decode("utf-8", "replace")


def _read(data: _Bytes, end: int) -> ModelMetadata:
    made = ModelMetadata()
    for number, value, start, stop in _fields(data, 0, end):
        if number == 2:
            made.producer_name = _text(data, start, stop)
        elif number == 4:
            made.domain = _text(data, start, stop)
        elif number == 5:
            made.version = value - 2**64 if value >= 2**63 else value
        elif number == 6:
            made.description = _text(data, start, stop)
        elif number == 7:
            for part, _, a, b in _fields(data, start, stop):
                if part == 2:
                    made.graph_name = _text(data, a, b)
                elif part == 10:
                    made.graph_description = _text(data, a, b)
        elif number == 14:
            pair = {part: _text(data, a, b) for part, _, a, b in _fields(data, start, stop)}
            made.custom_metadata_map[pair.get(1, "")] = pair.get(2, "")
    return made


def _type(data: _Bytes, start: int, end: int) -> str:
    """What ONNX Runtime calls a type: ``tensor(float)``, ``seq(map(int64,tensor(float)))``."""
    for kind, _, a, b in _fields(data, start, end):
        inside = list(_fields(data, a, b))
        if kind == 1:
            numbers = [value for part, value, _, _ in inside if part == 1]
            return f"tensor({element_name(numbers[-1]) if numbers else 'undefined'})"
        if kind in (4, 9):
            name = "seq" if kind == 4 else "optional"
            return f"{name}({''.join(_type(data, x, y) for part, _, x, y in inside if part == 1)})"
        if kind == 5:
            keys = "".join(element_name(value) for part, value, _, _ in inside if part == 1)
            values = "".join(_type(data, x, y) for part, _, x, y in inside if part == 2)
            return f"map({keys},{values})"
    return ""


def _port_types(data: _Bytes, end: int) -> dict[str, str]:
    types: dict[str, str] = {}
    graphs = [(a, b) for number, _, a, b in _fields(data, 0, end) if number == 7]
    for start, stop in graphs:
        for number, _, a, b in _fields(data, start, stop):
            if number not in (11, 12):
                continue
            port = [(part, x, y) for part, _, x, y in _fields(data, a, b)]
            declared = "".join(_type(data, x, y) for part, x, y in port if part == 2)
            types.update((_text(data, x, y), declared) for part, x, y in port if part == 1)
    return types


def port_types(model: Path | bytes) -> dict[str, str]:
    """The types of the inputs and outputs of a model, as ONNX Runtime calls them.

    Raises:
        tilewright.ModelError: for a damaged model.
    """
    if isinstance(model, bytes):
        return _port_types(model, len(model))
    with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return _port_types(mapped, len(mapped))


def metadata(model: Path | bytes) -> ModelMetadata:
    """What a model says of itself: the path of a file, or its content.

    Raises:
        tilewright.ModelError: for a damaged model.
    """
    if isinstance(model, bytes):
        return _read(model, len(model))
    with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return _read(mapped, len(mapped))
