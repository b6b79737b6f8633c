"""ONNX Runtime's names over Tilewright, so that trying it is a change of one import.

>>> import numpy as np
>>> from tilewright import onnxruntime as ort
>>> session = ort.InferenceSession("examples/digits/digits.onnx")
>>> [(i.name, i.shape, i.type) for i in session.get_inputs()]
[('image', ['N', 1, 8, 8], 'tensor(float)')]
>>> logits, probabilities = session.run(None, {"image": np.zeros((2, 1, 8, 8), np.float32)})
>>> probabilities.shape
(2, 10)
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._types import Array, Path, Port
from .errors import InputError, UnsupportedError
from .executable import Executable
from .module import Module, load

__all__ = ["InferenceSession", "NodeArg", "SessionOptions", "get_available_providers", "get_device"]

#: Executables that a session keeps, the latest used.
KEPT = 16

_TYPES = {"float32": "float", "float64": "double", "bool": "bool", "float16": "float16"}


class SessionOptions:
    """How a session runs. Options of ONNX Runtime that mean nothing here may be set, and do nothing."""

    def __init__(self) -> None:
        #: Threads of a run; 0 for one a core.
        self.intra_op_num_threads = 0


class NodeArg:
    """An input or output.

    Attributes:
        name: Its name.
        shape: Its sizes; open ones are names or ``None``.
        type: Its type, as ONNX Runtime calls it: ``tensor(float)``.
    """

    def __init__(self, port: Port) -> None:
        self.name = port.name
        self.shape = [None if size == "?" else size for size in port.shape or ()]
        self.type = f"tensor({_TYPES.get(port.dtype, port.dtype)})"

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


def get_available_providers() -> list[str]:
    """The providers: one."""
    return ["CPUExecutionProvider"]


def get_device() -> str:
    """The device: ``CPU``."""
    return "CPU"


class InferenceSession:
    """A model that runs on what it is given.

    It is compiled for the sizes of the first run. Where others come, it is compiled once more with its
    sizes open, for all that follow; a model that cannot be compiled so is compiled for each.

    Args:
        path_or_bytes: The model: the path of a file, or its content.
        sess_options: How it runs.
        providers: Taken for ONNX Runtime's sake.
        provider_options: The same.
        layout: In which layouts it is computed, as :meth:`tilewright.Module.compile` takes it.
        **kwargs: Taken for ONNX Runtime's sake.

    Raises:
        tilewright.Error: those of reading the model.
    """

    def __init__(
        self,
        path_or_bytes: Path | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        *,
        layout: str | None = "plan",
        **kwargs: Any,
    ) -> None:
        self._module = _load(path_or_bytes)
        self._inputs = self._module.inputs
        self._threads = getattr(sess_options, "intra_op_num_threads", 0) or 0
        self._layout = layout
        self._kept: dict[Any, tuple[Executable, tuple[str, ...]]] = {}
        self._lock = threading.Lock()
        #: The executable for all sizes, once a second one was asked for, if there can be one.
        self._open: Executable | None = None
        self._is_open_tried = False
        #: Inputs that sizes depend on, once that is known: their values are compiled in.
        self._fixed: set[str] = set()

    def get_inputs(self) -> list[NodeArg]:
        """What a run takes."""
        return [NodeArg(port) for port in self._inputs]

    def get_outputs(self) -> list[NodeArg]:
        """What a run gives; compiles the model where no run has.

        Raises:
            tilewright.InputError: if sizes have to be known first.
        """
        with self._lock:
            last = next(reversed(self._kept.values()), None)
            executable = self._open or (last[0] if last else self._compile(self._module))
        return [NodeArg(port) for port in executable.outputs]

    def get_providers(self) -> list[str]:
        """The providers: one."""
        return get_available_providers()

    def executable(self, feed: Mapping[str, Array]) -> tuple[Executable, tuple[str, ...]]:
        """The executable for these inputs, and the names of those that it takes."""
        names = [port.name for port in self._inputs]
        unknown = [name for name in feed if name not in names]
        if unknown:
            raise InputError(f"there is no input `{unknown[0]}`; the inputs are: {', '.join(names)}")
        arrays = {
            name: np.asarray(x) if isinstance(x, (list, tuple, float, int)) else x for name, x in feed.items()
        }
        shapes = tuple((name, tuple(np.shape(x)), str(getattr(x, "dtype", ""))) for name, x in arrays.items())
        with self._lock:
            fixed = tuple((n, np.asarray(arrays[n]).tobytes()) for n in sorted(self._fixed) if n in arrays)
            key = (shapes, fixed)
            found = self._kept.pop(key, None)
            # A size of zero is no open one.
            is_empty = any(0 in shape for _, shape, _ in shapes)
            if found is None and self._kept and not self._is_open_tried and not is_empty:
                self._is_open_tried = True
                self._open = self._compiled_open()
            if found is None and self._open is not None and not is_empty:
                return self._open, ()
            if found is None:
                found = self._compiled(arrays)
                if not self._fixed.issuperset(found[1]):
                    self._fixed.update(found[1])
                fixed = tuple((n, np.asarray(arrays[n]).tobytes()) for n in sorted(self._fixed) if n in arrays)
                key = (shapes, fixed)
            self._kept[key] = found
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return found

    def _compiled(self, arrays: Mapping[str, Array]) -> tuple[Executable, tuple[str, ...]]:
        shapes = {name: tuple(np.shape(x)) for name, x in arrays.items()}
        # Values on which sizes may depend: those that are read become constants.
        module = self._module.with_sizes(shapes=shapes, values={**arrays})
        return self._compile(module), module.fixed_inputs

    def _compiled_open(self) -> Executable | None:
        """The model for all sizes; ``None`` if sizes depend on values, or an operator needs them."""
        try:
            return self._compile(self._module)
        except (InputError, UnsupportedError):
            return None

    def _compile(self, module: Module) -> Executable:
        return module.compile(threads=self._threads, layout=self._layout)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Array],
        run_options: Any = None,
    ) -> list[Any]:
        """Runs on inputs by name and gives the outputs, in order.

        Args:
            output_names: Which outputs; ``None`` for all.
            input_feed: An array for each input.
            run_options: Taken for ONNX Runtime's sake.

        Raises:
            tilewright.InputError: for inputs that do not fit, and outputs that there are not.
        """
        executable, _ = self.executable(input_feed)
        taken = set(executable.input_names)
        given = executable(**{name: x for name, x in input_feed.items() if name in taken})
        outputs = list(given) if isinstance(given, tuple) else [given]
        if output_names is None:
            return outputs
        names = executable.output_names
        missing = [name for name in output_names if name not in names]
        if missing:
            raise InputError(f"there is no output `{missing[0]}`; the outputs are: {', '.join(names)}")
        return [outputs[names.index(name)] for name in output_names]


def _load(model: Path | bytes) -> Module:
    if not isinstance(model, (bytes, bytearray, memoryview)):
        return load(model)
    # The reader takes files, whose weights may lie beside them.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model)
        return load(path)
