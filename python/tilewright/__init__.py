"""Tilewright: a tensor compiler whose subject is memory layout.

ONNX models and TVMScript in, native code on NumPy arrays out::

    import numpy as np
    import tilewright

    model = tilewright.load("examples/digits/digits.onnx", dims={"N": 2})
    exe = model.compile()
    logits, probabilities = exe(np.zeros((2, 1, 8, 8), np.float32))

* :func:`load`, :func:`parse`: files and TVMScript to a :class:`Module`.
* :meth:`Module.compile`: to an :class:`Executable`, which is called on arrays.
* :class:`Schedule`, :mod:`~tilewright.passes`: what changes a module.
* :mod:`~tilewright.errors`: what goes wrong, with its place.
"""

from __future__ import annotations

from . import _native, errors, passes
from ._types import Port
from .errors import (
    Error,
    ExecutionError,
    FileError,
    InputError,
    InternalError,
    MalformedError,
    ModelError,
    Place,
    RefusedError,
    SyntaxError,
    ToolchainError,
    UnsupportedError,
)
from .executable import Executable, Profile, open
from .module import Difference, Module, Transformed, load, parse
from .schedule import AXIS_SEPARATOR, Schedule

__version__: str = _native.__version__

#: The stages of a compilation, in order: :meth:`Module.after` takes them.
STAGES: tuple[str, ...] = tuple(_native.stages())

__all__ = [
    "AXIS_SEPARATOR",
    "Difference",
    "Error",
    "Executable",
    "ExecutionError",
    "FileError",
    "InputError",
    "InternalError",
    "MalformedError",
    "ModelError",
    "Module",
    "Place",
    "Port",
    "Profile",
    "RefusedError",
    "STAGES",
    "Schedule",
    "SyntaxError",
    "ToolchainError",
    "Transformed",
    "UnsupportedError",
    "errors",
    "load",
    "open",
    "parse",
    "passes",
]
