"""What is given for inputs as arrays of an executable, and its arrays as ONNX Runtime gives outputs.

An executable takes and gives arrays of numbers. A tensor of strings is their UTF-8 bytes along one more
axis, filled up with zeros. A map is its numbers, ``NAME``, and its keys, ``NAME.keys``. The tensors of a
sequence are ``NAME.0``, ``NAME.1``, and so on; for an optional that is not there, there is nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._ort_metadata import Declared
from ._ort_values import OrtValue, element_type, type_name
from ._types import Port
from .errors import InputError, UnsupportedError

__all__ = ["Feeds", "NodeArg"]


class NodeArg:
    """An input, an output, or a weight that may be given.

    Attributes:
        name: Its name.
        shape: Its sizes; open ones are names or ``None``.
        type: Its type, as ONNX Runtime calls it: ``tensor(float)``.
    """

    def __init__(self, name: str, kind: str, shape: Iterable[int | str | None]) -> None:
        self.name = name
        self.type = kind
        self.shape = list(shape)

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class Feeds:
    """The inputs and outputs of a model, by name.

    Args:
        inputs: What the model says of its inputs; those that are weights are none.
        outputs: The same of its outputs.
        ports: The inputs of the module.
    """

    def __init__(self, inputs: Sequence[Declared], outputs: Sequence[Declared], ports: Sequence[Port]) -> None:
        self._types = {one.name: one.type for one in (*inputs, *outputs)}
        self.ports = tuple(ports)
        self._ports = {port.name: port for port in ports}
        self.inputs = [one.name for one in inputs]

    def _kind(self, name: str) -> str:
        return self._types.get(name, "")

    @property
    def needs_values(self) -> bool:
        """Whether what is given decides which inputs an executable has, or the elements of constants."""
        kinds = [self._kind(name) for name in self.inputs]
        return any(kind.startswith(("seq(tensor", "optional(", "tensor(string")) for kind in kinds)

    def missing(self, feed: Mapping[str, Any]) -> list[str]:
        """The inputs that are not given; optionals need not be."""
        return [n for n in self.inputs if n not in feed and not self._kind(n).startswith("optional(")]

    def arrays(self, name: str, value: Any) -> dict[str, Any]:
        """What is given for an input as arrays by name.

        Raises:
            tilewright.InputError: for what is no value of its type.
        """
        kind = self._kind(name)
        if isinstance(value, OrtValue):
            value = value._value
        if value is None and kind.startswith("optional("):
            return {}
        if value is None:
            raise InputError(f"nothing was given for input `{name}`")
        if kind.startswith("optional("):
            kind = kind[len("optional(") : -1]
        if _is_map(kind):
            return self._map(name, kind, value)
        if not kind.startswith("seq("):
            return {name: self._array(name, kind, value)}
        if not isinstance(value, (list, tuple)):
            raise InputError(f"input `{name}` is a {kind}: a list is needed")
        inner = kind[len("seq(") : -1]
        return {f"{name}.{k}": self._array(f"{name}.{k}", inner, x) for k, x in enumerate(value)}

    def _array(self, name: str, kind: str, value: Any) -> Any:
        """A tensor as an executable takes it."""
        if kind == "tensor(string)":
            return _text_bytes(name, np.asarray(value))
        port = self._ports.get(name)
        own = port.dtype if port is not None else ""
        if isinstance(value, (list, tuple, float, int)):
            return np.asarray(value, own if own in np.sctypeDict else None)
        narrow = element_type(kind[len("tensor(") : -1])
        if narrow is not None and narrow == getattr(value, "dtype", None) and own == "uint8" != narrow.name:
            # Elements that the compiler takes by their bits.
            return value.view(np.uint8)
        return value

    def _map(self, name: str, kind: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise InputError(f"input `{name}` is a {kind}: a dict is needed")
        keys = list(value)
        keys_name = _map_keys(name)
        if self._ports[keys_name].dtype == "uint8":
            encoded = _text_bytes(name, np.array(keys, object))
        else:
            strange = [key for key in keys if isinstance(key, str) or int(key) != key]
            if strange:
                raise InputError(f"input `{name}` is a {kind}: {strange[0]!r} is no key of it")
            encoded = np.asarray(keys, np.int64)
        return {name: np.asarray(list(value.values()), self._ports[name].dtype), keys_name: encoded}

    def output_names(self, names: Iterable[str]) -> list[str]:
        """Those of an executable's outputs that are outputs of the model."""
        keys = {_map_keys(name) for name, kind in self._types.items() if _is_map(kind)}
        return [name for name in names if name not in keys]

    def value(self, arrays: Mapping[str, Any], name: str) -> Any:
        """An output, as ONNX Runtime gives it."""
        kind, value = self._kind(name), arrays[name]
        if kind == "tensor(string)":
            return _texts_of(value)
        if _is_map(kind):
            keys = arrays[_map_keys(name)]
            names = (keys if keys.dtype == np.int64 else _texts_of(keys)).tolist()
            if value.ndim == 1:
                return dict(zip(names, value.tolist()))
            return [dict(zip(names, row)) for row in value.tolist()]
        if isinstance(value, np.ndarray) and value.dtype == np.uint8 and kind.startswith("tensor(float8"):
            narrow = element_type(kind[len("tensor(") : -1])
            return value if narrow is None else value.view(narrow)
        return value

    def described(self, port: Port) -> NodeArg:
        """An input or output of an executable."""
        kind = self._kind(port.name)
        shape = [None if size == "?" else size for size in port.shape or ()]
        if kind == "tensor(string)":
            # The last axis is that of the bytes.
            return NodeArg(port.name, kind, shape[:-1])
        if kind and not kind.startswith("tensor("):
            return NodeArg(port.name, kind, [])
        narrow = kind.startswith("tensor(") and port.dtype in ("uint8", "int8")
        return NodeArg(port.name, kind if narrow else type_name(port.dtype), shape)


def declared(one: Declared, dims: Mapping[str, int]) -> NodeArg | None:
    """An output as the model says it, with the sizes that were settled; ``None`` where that is not all."""
    if not one.type.startswith("tensor("):
        return NodeArg(one.name, one.type, []) if one.type else None
    if one.shape is None or one.type == "tensor(undefined)" or None in one.shape:
        return None
    sizes = [dims.get(size, size) if isinstance(size, str) else size for size in one.shape]
    return NodeArg(one.name, one.type, sizes)


def _is_map(kind: str) -> bool:
    """Whether a type is that of maps, or of sequences of maps."""
    return kind.startswith(("map(", "seq(map("))


def _map_keys(name: str) -> str:
    """The name of the input or output that holds the keys of a map."""
    return f"{name}.keys"


def _text_bytes(name: str, texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Strings as the compiler takes them."""
    encoded = []
    for text in texts.ravel():
        if not isinstance(text, (str, bytes, np.void)):
            raise InputError(f"input `{name}` has an element that is no string: {type(text).__name__}")
        encoded.append(
            text.encode()
            if isinstance(text, str)
            else text.tobytes()
            if isinstance(text, np.void)
            else bytes(text)
        )
        if encoded[-1].endswith(b"\0") and not isinstance(text, np.void):
            raise UnsupportedError(f"input `{name}` has a string that ends with zeros")
    longest = max([1, *map(len, encoded)])
    made = np.array(encoded, f"S{longest}")
    return made.view(np.uint8).reshape(*texts.shape, longest)


def _texts_of(encoded: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The strings whose bytes lie along the last axis."""
    made = np.empty(encoded.shape[:-1], object)
    for at in np.ndindex(*made.shape):
        made[at] = encoded[at].tobytes().rstrip(b"\0").decode("utf-8", "replace")
    return made
