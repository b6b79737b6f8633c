"""Tilewright: a tensor compiler whose subject is memory layout.

ONNX models and TVMScript in, native code on NumPy arrays out::

    import numpy as np
    import tilewright

    model = tilewright.load("examples/digits/digits.onnx", dims={"N": 2})
    exe = model.compile()
    logits, probabilities = exe(np.zeros((2, 1, 8, 8), np.float32))

* :func:`load`, :func:`parse`: files and TVMScript to a :class:`Module`.
* :meth:`Module.compile`: to an :class:`Executable`, which is called on arrays.
* :class:`Schedule`, :mod:`~tilewright.passes`: what changes a module; :func:`verify`,
  :meth:`Module.diff`: what compares two.
* :func:`plan`, :func:`tune`: layouts of whole models, and measuring what they cost.
* :func:`script`, :mod:`~tilewright.te`: functions written in Python.
* ``tilewright.onnxruntime``, ``tilewright.onnx_backend``, ``tilewright.torch_backend``,
  ``tilewright.ray``: other people's interfaces.
* :mod:`~tilewright.errors`: what goes wrong, with its place.
"""

from __future__ import annotations

import os as _os

from . import _native, drawing, errors, passes, te
from ._types import Port
from .comparing import Verified, Witness, verify
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
from .executable import DeviceTensor, Executable, Profile, Storage, open
from .freezing import freeze
from .function import Function
from .module import Difference, Module, Transformed, load, parse
from .planning import Layout, Plan, plan
from .schedule import AXIS_SEPARATOR, Schedule
from .scripted import I, R, T, script
from .tuning import Tuned, tune

# A wheel brings its own LLVM.
_native.bundle(_os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "lib"))

__version__: str = _native.__version__

#: The stages of a compilation, in order: :meth:`Module.after` takes them.
STAGES: tuple[str, ...] = tuple(_native.stages())

__all__ = [
    "AXIS_SEPARATOR",
    "DeviceTensor",
    "Difference",
    "Error",
    "Executable",
    "ExecutionError",
    "FileError",
    "Function",
    "I",
    "InputError",
    "InternalError",
    "Layout",
    "MalformedError",
    "ModelError",
    "Module",
    "Place",
    "Plan",
    "Port",
    "Profile",
    "R",
    "RefusedError",
    "STAGES",
    "Schedule",
    "Storage",
    "SyntaxError",
    "T",
    "ToolchainError",
    "Transformed",
    "Tuned",
    "UnsupportedError",
    "Verified",
    "Witness",
    "drawing",
    "errors",
    "freeze",
    "load",
    "open",
    "parse",
    "passes",
    "plan",
    "script",
    "te",
    "tune",
    "verify",
]
