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

import json
import os
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Callable

import numpy as np

from . import _native
from ._ort_metadata import ModelMetadata, metadata, port_types
from ._ort_options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._ort_values import IOBinding, OrtValue, type_name
from ._types import Array, Path, Port
from .errors import ExecutionError, InputError, UnsupportedError
from .executable import Executable
from .module import Module, load

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]

__version__: str = _native.__version__

#: Executables that a session keeps, the latest used.
KEPT = 16

#: Names that ONNX Runtime has for what computes.
_PROVIDERS = [
    "TensorrtExecutionProvider",
    "NvTensorRTRTXExecutionProvider",
    "CUDAExecutionProvider",
    "MIGraphXExecutionProvider",
    "ROCMExecutionProvider",
    "OpenVINOExecutionProvider",
    "DnnlExecutionProvider",
    "VitisAIExecutionProvider",
    "QNNExecutionProvider",
    "NnapiExecutionProvider",
    "VSINPUExecutionProvider",
    "JsExecutionProvider",
    "CoreMLExecutionProvider",
    "ArmNNExecutionProvider",
    "ACLExecutionProvider",
    "DmlExecutionProvider",
    "RknpuExecutionProvider",
    "WebNNExecutionProvider",
    "WebGpuExecutionProvider",
    "XnnpackExecutionProvider",
    "CANNExecutionProvider",
    "AzureExecutionProvider",
    "CPUExecutionProvider",
]

#: Arguments of a session that only ONNX Runtime's own machinery has.
_WITHOUT_MEANING = ("disabled_optimizers", "enable_fallback", "read_config_from_model")


class NodeArg:
    """An input or output.

    Attributes:
        name: Its name.
        shape: Its sizes; open ones are names or ``None``.
        type: Its type, as ONNX Runtime calls it: ``tensor(float)``.
    """

    def __init__(self, port: Port, declared: str = "") -> None:
        self.name = port.name
        self.shape = [None if size == "?" else size for size in port.shape or ()]
        self.type = type_name(port.dtype)
        if declared == "tensor(string)":
            # The last axis is that of the bytes.
            self.shape.pop()
            self.type = declared
        elif _is_map(declared):
            self.shape = []
            self.type = declared

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


def get_available_providers() -> list[str]:
    """The providers: one."""
    return ["CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    """The names of providers that ONNX Runtime knows; one of them is here."""
    return list(_PROVIDERS)


def get_device() -> str:
    """The device: ``CPU``."""
    return "CPU"


def get_version_string() -> str:
    """The version of this package."""
    return __version__


def set_default_logger_severity(severity: int) -> None:
    """Sets what is logged; nothing is: errors are raised."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Sets what is logged; nothing is: errors are raised."""


def _checked_providers(
    providers: Sequence[Any] | None, provider_options: Sequence[Any] | None
) -> dict[str, dict[str, str]]:
    """The providers that are here, with their options; what is not here is warned of, or refused.

    Raises:
        ValueError: for what is no list of names, or of names with options.
        RuntimeError: for names that ONNX Runtime does not know.
    """
    if providers is None:
        return {"CPUExecutionProvider": {}}
    if provider_options is not None:
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(name, str) for name in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(given, dict) for given in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        pairs = list(zip(providers, provider_options))
    else:
        pairs = []
        for given in [providers] if isinstance(providers, str) else providers:
            if isinstance(given, str):
                pairs.append((given, {}))
            elif (
                isinstance(given, tuple)
                and len(given) == 2
                and isinstance(given[0], str)
                and isinstance(given[1], dict)
            ):
                pairs.append(given)
            else:
                raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    found: dict[str, dict[str, str]] = {}
    for name, options in pairs:
        if name not in _PROVIDERS:
            raise RuntimeError(f"Unknown Provider Type: {name}")
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
        elif name not in get_available_providers():
            here = ", ".join(get_available_providers())
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names.Available providers: '{here}'",
                stacklevel=4,
            )
        else:
            found[name] = {str(key): str(value) for key, value in options.items()}
    # The CPU computes what nothing else does.
    return found or {"CPUExecutionProvider": {}}


class InferenceSession:
    """A model that runs on what it is given.

    It is compiled for the sizes of the first run. Where others come, it is compiled once more with its
    sizes open, for all that follow; a model that cannot be compiled so is compiled for each.

    It can be pickled, by the path or the bytes of its model.

    Args:
        path_or_bytes: The model: the path of a file, or its content.
        sess_options: How it runs.
        providers: What computes, as ONNX Runtime calls it: what is not here is warned of, and the CPU
            computes.
        provider_options: Options of each; the CPU has none that mean something.
        layout: In which layouts it is computed, as :meth:`tilewright.Module.compile` takes it; where
            nothing is said, ``plan`` if the level of optimization includes layouts, and else ``none``.
        **kwargs: ``enable_fallback``: whether the CPU computes in the place of providers that there are
            not at all, with a warning, which is the default; and what only ONNX Runtime's own machinery has
            (``disabled_optimizers``, ``read_config_from_model``).

    Raises:
        tilewright.Error: those of reading the model.
        TypeError: for arguments that there are not.
        ValueError: with ``enable_fallback=False``, for providers that are no names.
        RuntimeError: with ``enable_fallback=False``, for providers that ONNX Runtime does not know.
    """

    def __init__(
        self,
        path_or_bytes: Path | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        *,
        layout: str | None = "",
        **kwargs: Any,
    ) -> None:
        unknown = [name for name in kwargs if name not in _WITHOUT_MEANING]
        if unknown:
            raise TypeError(f"InferenceSession() got an unexpected keyword argument '{unknown[0]}'")
        if isinstance(path_or_bytes, (bytearray, memoryview)):
            path_or_bytes = bytes(path_or_bytes)
        if not isinstance(path_or_bytes, (bytes, str, os.PathLike)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is a SessionOptions, not {type(sess_options).__name__}")
        try:
            self._providers = _checked_providers(providers, provider_options)
        except (ValueError, RuntimeError) as error:
            if not kwargs.get("enable_fallback", True):
                raise
            instead = f"Falling back to {get_available_providers()} and retrying."
            warnings.warn(f"EP Error {error} when using {providers}\n{instead}", stacklevel=2)
            self._providers = _checked_providers(None, None)
        self._model = path_or_bytes if isinstance(path_or_bytes, bytes) else os.path.abspath(path_or_bytes)
        self._options = sess_options or SessionOptions()
        self._wanted = layout
        module = load(self._model)
        dims = self._options._dims
        self._prepare(module.with_sizes(dims) if dims else module)

    def _prepare(self, module: Module) -> None:
        """What is not pickled."""
        self._module = module
        self._inputs = module.inputs
        types = port_types(self._model)
        self._texts = {name for name, declared in types.items() if declared == "tensor(string)"}
        #: Maps and sequences of maps, whose keys are inputs and outputs of their own.
        self._maps = {name: declared for name, declared in types.items() if _is_map(declared)}
        level = self._options.graph_optimization_level
        chosen = "plan" if level >= GraphOptimizationLevel.ORT_ENABLE_LAYOUT else None
        self._how: dict[str, Any] = {
            "threads": max(self._options.intra_op_num_threads, 0),
            "layout": chosen if self._wanted == "" else self._wanted,
            "fuse": level > GraphOptimizationLevel.ORT_DISABLE_ALL,
        }
        self._kept: dict[Any, tuple[Executable, tuple[str, ...]]] = {}
        self._lock = threading.Lock()
        #: The executable for all sizes, once a second one was asked for, if there can be one.
        self._open: Executable | None = None
        self._is_open_tried = False
        #: Inputs that sizes depend on, once that is known: their values are compiled in.
        self._fixed: set[str] = set()
        self._pool: ThreadPoolExecutor | None = None
        #: What was measured, if that is wanted; times are microseconds since the start.
        self._events: list[dict[str, Any]] | None = [] if self._options.enable_profiling else None
        self._start = time.time_ns() if self._options.enable_profiling else 0

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("_model", "_options", "_providers", "_wanted")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        module = load(self._model)
        dims = self._options._dims
        self._prepare(module.with_sizes(dims) if dims else module)

    def get_inputs(self) -> list[NodeArg]:
        """What a run takes."""
        return self._ports(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """What a run gives; compiles the model where no run has.

        Raises:
            tilewright.InputError: if sizes have to be known first.
        """
        with self._lock:
            last = next(reversed(self._kept.values()), None)
            executable = self._open or (last[0] if last else self._compile(self._module))
        return self._ports(executable.outputs)

    def _ports(self, ports: Sequence[Port]) -> list[NodeArg]:
        """Inputs or outputs; the keys of maps are none of their own."""
        keys = {_map_keys(name) for name in self._maps}
        declared = {**self._maps, **dict.fromkeys(self._texts, "tensor(string)")}
        return [NodeArg(port, declared.get(port.name, "")) for port in ports if port.name not in keys]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself.

        Raises:
            tilewright.ModelError: for a damaged model.
        """
        return metadata(self._model)

    def get_session_options(self) -> SessionOptions:
        """How it runs."""
        return self._options

    def get_providers(self) -> list[str]:
        """The providers that compute."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider."""
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None
    ) -> None:
        """Sets the providers, as the session takes them.

        Raises:
            ValueError: for what is no list of names.
            RuntimeError: for names that ONNX Runtime does not know.
        """
        self._providers = _checked_providers(providers, provider_options)

    def enable_fallback(self) -> None:
        """Lets another provider run what one fails at: there is one."""

    def disable_fallback(self) -> None:
        """Lets no other provider run what one fails at: there is one."""

    def executable(self, feed: Mapping[str, Array]) -> tuple[Executable, tuple[str, ...]]:
        """The executable for these inputs, and the names of those that it takes."""
        names = [port.name for port in self._inputs]
        unknown = [name for name in feed if name not in names]
        if unknown:
            raise InputError(f"there is no input `{unknown[0]}`; the inputs are: {', '.join(names)}")
        keys = {_map_keys(name) for name in self._maps}
        missing = [name for name in names if name not in feed and name not in keys]
        if missing:
            raise InputError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        arrays = dict(feed)
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
        return module.compile(**self._how)

    def _array(self, name: str, value: Any) -> Any:
        """A value of a feed as an executable takes it."""
        if isinstance(value, OrtValue):
            return value._array
        if value is None:
            raise InputError(f"nothing was given for input `{name}`")
        types = [port.dtype for port in self._inputs if port.name == name]
        if isinstance(value, (list, tuple, float, int)) and name not in self._texts:
            value = np.asarray(value, types[0] if types and types[0] in np.sctypeDict else None)
        if name in self._texts:
            return _text_bytes(name, np.asarray(value))
        return value

    def _arrays(self, name: str, value: Any) -> dict[str, Any]:
        """What is given for a value of a feed: a map is its numbers and its keys."""
        if name not in self._maps:
            return {name: self._array(name, value)}
        if not isinstance(value, Mapping):
            raise InputError(f"input `{name}` is a {self._maps[name]}: a dict is needed")
        types = {port.name: port.dtype for port in self._inputs}
        keys = list(value)
        if types[_map_keys(name)] == "uint8":
            encoded = _text_bytes(name, np.array(keys, object))
        else:
            encoded = np.asarray(keys, np.int64)
        return {name: np.asarray(list(value.values()), types[name]), _map_keys(name): encoded}

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Array],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs on inputs by name and gives the outputs, in order.

        Args:
            output_names: Which outputs; ``None``, or none of them, for all.
            input_feed: An array for each input.
            run_options: How this run goes.

        Raises:
            tilewright.InputError: for inputs that do not fit, and outputs that there are not.
            tilewright.ExecutionError: if the run was told to end.
        """
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise TypeError(f"run_options is a RunOptions, not {type(run_options).__name__}")
        if run_options is not None and run_options.terminate:
            raise ExecutionError("Exiting due to terminate flag being set to true.")
        feed: dict[str, Any] = {}
        for name, value in input_feed.items():
            feed.update(self._arrays(name, value))
        executable, _ = self.executable(feed)
        keys = {_map_keys(name) for name in self._maps}
        names = [name for name in executable.output_names if name not in keys]
        missing = [name for name in output_names or () if name not in names]
        if missing:
            raise InputError(f"there is no output `{missing[0]}`; the outputs are: {', '.join(names)}")
        taken = set(executable.input_names)
        given = {name: x for name, x in feed.items() if name in taken}
        start = time.perf_counter_ns()
        made = executable(**given)
        if self._events is not None:
            self._measured(executable, given, time.perf_counter_ns() - start)
        listed = made if isinstance(made, tuple) else (made,)
        arrays = dict(zip(executable.output_names, listed))
        return [self._value(arrays, name) for name in output_names or names]

    def _value(self, arrays: Mapping[str, Any], name: str) -> Any:
        """An output, as ONNX Runtime gives it."""
        if name in self._texts:
            return _texts_of(arrays[name])
        if name not in self._maps:
            return arrays[name]
        keys = arrays[_map_keys(name)]
        names = (keys if keys.dtype == np.int64 else _texts_of(keys)).tolist()
        if arrays[name].ndim == 1:
            return dict(zip(names, arrays[name].tolist()))
        return [dict(zip(names, row)) for row in arrays[name].tolist()]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """As :meth:`run`, with values in the place of arrays."""
        return [OrtValue(x) for x in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Array],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs on another thread, and calls a function at its end.

        Args:
            output_names: Which outputs; ``None`` for all.
            input_feed: An array for each input.
            callback: Is called with the outputs, ``user_data``, and what went wrong, or ``""``.
            user_data: Anything.
            run_options: How this run goes.
        """
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "tilewright-run")
            pool = self._pool

        def work() -> None:
            try:
                results, wrong = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                results, wrong = [], str(error) or type(error).__name__
            callback(results, user_data, wrong)

        pool.submit(work)

    def io_binding(self) -> IOBinding:
        """What inputs and outputs may be bound to."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs on what is bound.

        Raises:
            tilewright.InputError: as :meth:`run`, and for memory of outputs that does not fit.
            RuntimeError: if no output is bound.
        """
        iobinding._run(lambda names, feed: self.run(names, feed, run_options))

    def _measured(self, executable: Executable, given: Mapping[str, Any], duration: int) -> None:
        """Keeps how long a run took, and how long its steps take."""
        end = time.time_ns()
        begin = (end - duration - self._start) // 1000
        steps = executable.profile(repeat=1, **given).steps
        with self._lock:
            if self._events is None:
                return
            self._events.append(_event("Session", "model_run", begin, duration // 1000))
            at = begin
            for name, seconds in steps:
                self._events.append(_event("Node", name, at, int(seconds * 1e6)))
                at += int(seconds * 1e6)

    def get_profiling_start_time_ns(self) -> int:
        """When measuring began, in nanoseconds since 1970; 0 where nothing is measured."""
        return self._start

    def end_profiling(self) -> str:
        """Writes what was measured, for a browser's viewer of traces, and gives the name of the file.

        It is empty where nothing was measured, or it was written before.
        """
        with self._lock:
            events, self._events = self._events, None
        if events is None:
            return ""
        now = datetime.now()
        stamp = f"{now:%Y-%m-%d_%H-%M-%S}_{now.microsecond // 1000}"
        path = f"{self._options.profile_file_prefix}_{stamp}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(events, file)
        return path


def _is_map(declared: str) -> bool:
    """Whether a type is that of maps, or of sequences of maps."""
    return declared.startswith(("map(", "seq(map("))


def _map_keys(name: str) -> str:
    """The name of the input or output that holds the keys of a map."""
    return f"{name}.keys"


def _event(category: str, name: str, start: int, duration: int) -> dict[str, Any]:
    """An event of a trace; times are microseconds."""
    return {
        "cat": category,
        "pid": os.getpid(),
        "tid": threading.get_ident(),
        "dur": duration,
        "ts": start,
        "ph": "X",
        "name": name,
        "args": {},
    }


def _text_bytes(name: str, texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Strings as the compiler takes them: UTF-8 along one more axis, filled up with zeros."""
    encoded = []
    for text in texts.ravel():
        if not isinstance(text, (str, bytes)):
            raise InputError(f"input `{name}` has an element that is no string: {type(text).__name__}")
        encoded.append(text.encode() if isinstance(text, str) else bytes(text))
    longest = max([1, *map(len, encoded)])
    made = np.array(encoded, f"S{longest}")
    return made.view(np.uint8).reshape(*texts.shape, longest)


def _texts_of(encoded: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The strings whose bytes lie along the last axis."""
    made = np.empty(encoded.shape[:-1], object)
    for at in np.ndindex(*made.shape):
        made[at] = encoded[at].tobytes().rstrip(b"\0").decode("utf-8", "replace")
    return made
