"""What an ONNX file says of itself, read from its bytes without the package ``onnx``.

A message of protocol buffers is fields in a row: a key with number and kind, then a number or bytes.
Weights are passed over by their length.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Union

from ._types import Path
from .errors import ModelError

__all__ = ["ModelMetadata", "metadata", "text_ports"]

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


def _is_text(data: _Bytes, start: int, end: int) -> bool:
    """Whether a type is that of tensors of strings."""
    for kind, _, a, b in _fields(data, start, end):
        if kind == 1 and any(part == 1 and value == 8 for part, value, _, _ in _fields(data, a, b)):
            return True
    return False


def _texts(data: _Bytes, end: int) -> set[str]:
    names: set[str] = set()
    graphs = [(a, b) for number, _, a, b in _fields(data, 0, end) if number == 7]
    for start, stop in graphs:
        for number, _, a, b in _fields(data, start, stop):
            if number not in (11, 12):
                continue
            port = [(part, x, y) for part, _, x, y in _fields(data, a, b)]
            if any(part == 2 and _is_text(data, x, y) for part, x, y in port):
                names.update(_text(data, x, y) for part, x, y in port if part == 1)
    return names


def text_ports(model: Path | bytes) -> set[str]:
    """The inputs and outputs of a model that are tensors of strings.

    Raises:
        tilewright.ModelError: for a damaged model.
    """
    if isinstance(model, bytes):
        return _texts(model, len(model))
    with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return _texts(mapped, len(mapped))


def metadata(model: Path | bytes) -> ModelMetadata:
    """What a model says of itself: the path of a file, or its content.

    Raises:
        tilewright.ModelError: for a damaged model.
    """
    if isinstance(model, bytes):
        return _read(model, len(model))
    with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return _read(mapped, len(mapped))
