"""What an ONNX file says of itself, read from its bytes without the package ``onnx``.

A message of protocol buffers is fields in a row: a key with number and kind, then a number or bytes.
Weights are passed over by their length.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from typing import NamedTuple, Union

from ._ort_values import element_name
from ._types import Path
from .errors import ModelError

__all__ = ["Declared", "Declarations", "ModelMetadata", "declarations", "fields", "metadata", "opened"]

Buffer = Union[bytes, memoryview, mmap.mmap]


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


def _number(data: Buffer, at: int, end: int) -> tuple[int, int]:
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


def fields(data: Buffer, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
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


def _text(data: Buffer, start: int, end: int) -> str:
    return bytes(data[start:end]).decode("utf-8", "replace")


def _read(data: Buffer, end: int) -> ModelMetadata:
    made = ModelMetadata()
    for number, value, start, stop in fields(data, 0, end):
        if number == 2:
            made.producer_name = _text(data, start, stop)
        elif number == 4:
            made.domain = _text(data, start, stop)
        elif number == 5:
            made.version = value - 2**64 if value >= 2**63 else value
        elif number == 6:
            made.description = _text(data, start, stop)
        elif number == 7:
            for part, _, a, b in fields(data, start, stop):
                if part == 2:
                    made.graph_name = _text(data, a, b)
                elif part == 10:
                    made.graph_description = _text(data, a, b)
        elif number == 14:
            pair = {part: _text(data, a, b) for part, _, a, b in fields(data, start, stop)}
            made.custom_metadata_map[pair.get(1, "")] = pair.get(2, "")
    return made


def _type(data: Buffer, start: int, end: int) -> str:
    """What ONNX Runtime calls a type: ``tensor(float)``, ``seq(map(int64,tensor(float)))``."""
    for kind, _, a, b in fields(data, start, end):
        inside = list(fields(data, a, b))
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


class Declared(NamedTuple):
    """What a model says of an input or output.

    Attributes:
        name: Its name.
        type: What ONNX Runtime calls its type; empty where the model does not say it.
        shape: The sizes of a tensor: numbers, names, or ``None`` for one that is not said; ``None`` where
            the model does not say how many there are.
        denotations: What the model says that each size means; mostly empty.
    """

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None
    denotations: tuple[str, ...]


class Declarations(NamedTuple):
    """The inputs and outputs of a model, in order, and the names of its weights."""

    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]
    weights: frozenset[str]


def _sizes(data: Buffer, start: int, end: int) -> tuple[list[int | str | None], list[str]]:
    """The sizes of a shape, and what they mean."""
    sizes: list[int | str | None] = []
    meanings = []
    for number, _, a, b in fields(data, start, end):
        if number != 1:
            continue
        size: int | str | None = None
        meaning = ""
        for part, value, x, y in fields(data, a, b):
            if part == 1:
                size = value if value < 2**63 else None
            elif part == 2:
                size = _text(data, x, y) or None
            elif part == 3:
                meaning = _text(data, x, y)
        sizes.append(size)
        meanings.append(meaning)
    return sizes, meanings


def _declared(data: Buffer, start: int, end: int) -> Declared:
    name = kind = ""
    shape: tuple[int | str | None, ...] | None = None
    denotations: tuple[str, ...] = ()
    for number, _, a, b in fields(data, start, end):
        if number == 1:
            name = _text(data, a, b)
        elif number == 2:
            kind = _type(data, a, b)
            tensors = [(x, y) for part, _, x, y in fields(data, a, b) if part == 1]
            shapes = [(x, y) for span in tensors for part, _, x, y in fields(data, *span) if part == 2]
            if shapes:
                sizes, meanings = _sizes(data, *shapes[-1])
                shape, denotations = tuple(sizes), tuple(meanings)
    return Declared(name, kind, shape, denotations)


def weight_name(data: Buffer, start: int, end: int) -> str:
    """The name of a weight."""
    return "".join(_text(data, a, b) for number, _, a, b in fields(data, start, end) if number == 8)


def _declarations(data: Buffer, end: int) -> Declarations:
    inputs, outputs, weights = [], [], set()
    graphs = [(a, b) for number, _, a, b in fields(data, 0, end) if number == 7]
    for start, stop in graphs:
        for number, _, a, b in fields(data, start, stop):
            if number == 5:
                weights.add(weight_name(data, a, b))
            elif number == 11:
                inputs.append(_declared(data, a, b))
            elif number == 12:
                outputs.append(_declared(data, a, b))
    return Declarations(tuple(inputs), tuple(outputs), frozenset(weights))


@contextlib.contextmanager
def opened(model: Path | bytes) -> Iterator[tuple[Buffer, int]]:
    """The content of a model and its length: that of a file is mapped."""
    if isinstance(model, bytes):
        yield model, len(model)
        return
    with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        yield mapped, len(mapped)


def declarations(model: Path | bytes) -> Declarations:
    """The inputs and outputs of a model: the path of a file, or its content.

    Raises:
        tilewright.ModelError: for a damaged model.
    """
    with opened(model) as (data, end):
        return _declarations(data, end)


def metadata(model: Path | bytes) -> ModelMetadata:
    """What a model says of itself: the path of a file, or its content.

    Raises:
        tilewright.ModelError: for a damaged model.
    """
    with opened(model) as (data, end):
        return _read(data, end)
