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

import copy
import json
import os
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Callable

from . import _native, _ort_logging
from ._ort_feeds import Feeds, NodeArg, declared
from ._ort_logging import set_callback as set_default_logger_callback
from ._ort_logging import set_severity as set_default_logger_severity
from ._ort_logging import set_verbosity as set_default_logger_verbosity
from ._ort_metadata import ModelMetadata, declarations, metadata
from ._ort_options import (
    OWN_ENTRIES,
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from ._ort_programs import Programs
from ._ort_providers import checked_providers, get_all_providers, get_available_providers, get_device
from ._ort_values import IOBinding, OrtDevice, OrtValue
from ._ort_weights import with_weights
from ._types import Array, Path
from .errors import ExecutionError, InputError, ModelError
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
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
]

__version__: str = _native.__version__

#: Arguments of a session that only ONNX Runtime's own machinery has.
_WITHOUT_MEANING = ("disabled_optimizers", "enable_fallback", "read_config_from_model")

#: Threads of the sessions that share theirs; 0 for one a core.
_shared_threads = 0


def get_version_string() -> str:
    """The version of this package."""
    return __version__


def get_build_info() -> str:
    """What this package is."""
    return f"Build Info: tilewright {__version__}"


def enable_telemetry_events() -> None:
    """Nothing is sent to anybody."""


def disable_telemetry_events() -> None:
    """Nothing is sent to anybody."""


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Sets the threads of sessions with ``use_per_session_threads`` off; 0 or less for one a core."""
    global _shared_threads
    _shared_threads = max(int(intra_op_num_threads), 0)


def _configured(options: SessionOptions, model: Path | bytes) -> SessionOptions:
    """The options that a model brings, over those that were given.

    Raises:
        tilewright.ModelError: for a configuration that cannot be read.
    """
    text = metadata(model).custom_metadata_map.get("ort_config")
    if text is None:
        return options
    made = copy.deepcopy(options)
    try:
        for name, value in json.loads(text).get("session_options", {}).items():
            made.add_session_config_entry(f"session.{name}", str(value))
    except (ValueError, AttributeError, RuntimeError) as error:
        raise ModelError(f"the configuration `ort_config` of the model: {error}") from error
    return made


class InferenceSession:
    """A model that runs on what it is given.

    It is compiled as it is made, for all sizes that the model leaves open, so that no run waits; a model that
    cannot be compiled so is compiled for the sizes of each run. :class:`SessionOptions` says how that may be
    done on another thread, at the first run, or quickly first.

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
            (``disabled_optimizers``); and ``read_config_from_model``: whether the options that the model brings
            count, as they do where ``ORT_LOAD_CONFIG_FROM_MODEL`` is 1.

    Raises:
        tilewright.Error: those of reading and compiling the model.
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
            self._providers = checked_providers(providers, provider_options)
        except (ValueError, RuntimeError) as error:
            if not kwargs.get("enable_fallback", True):
                raise
            instead = f"Falling back to {get_available_providers()} and retrying."
            warnings.warn(f"EP Error {error} when using {providers}\n{instead}", stacklevel=2)
            self._providers = checked_providers(None, None)
        self._model = path_or_bytes if isinstance(path_or_bytes, bytes) else os.path.abspath(path_or_bytes)
        self._options = sess_options or SessionOptions()
        reads = kwargs.get("read_config_from_model", os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1")
        if int(reads) == 1:
            self._options = _configured(self._options, self._model)
        self._wanted = layout
        self._prepare()

    def _prepare(self) -> None:
        """What is not pickled."""
        options = self._options
        model = with_weights(self._model, (), options._weights) if options._weights else self._model
        module = load(model)
        self._declared = declarations(model)
        self._dims = {**options._dims}
        for one in self._declared.inputs:
            for axis, meaning in enumerate(one.denotations):
                if meaning in options._denotations:
                    self._dims[f"{one.name}.{axis}"] = options._denotations[meaning]
        level = options.graph_optimization_level
        chosen = "plan" if level >= GraphOptimizationLevel.ORT_ENABLE_LAYOUT else None
        threads = options.intra_op_num_threads if options.use_per_session_threads else _shared_threads
        self._how: dict[str, Any] = {
            "threads": max(threads, 0),
            "layout": chosen if self._wanted == "" else self._wanted,
            "fuse": level > GraphOptimizationLevel.ORT_DISABLE_ALL,
        }
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        #: What was measured, if that is wanted; times are microseconds since the start.
        self._events: list[dict[str, Any]] | None = [] if options.enable_profiling else None
        self._start = time.time_ns() if options.enable_profiling else 0
        self._content = model
        self._feeds, self._programs = self._programs_of(module, frozenset())
        #: The same where weights are inputs.
        self._with_inputs: dict[frozenset[str], tuple[Feeds, Programs]] = {}

    def _programs_of(self, module: Module, given: frozenset[str]) -> tuple[Feeds, Programs]:
        """Inputs and executables of a module that takes some weights as inputs."""
        module = module.with_sizes(self._dims) if self._dims else module
        weights = self._declared.weights - given
        inputs = [one for one in self._declared.inputs if one.name not in weights]
        feeds = Feeds(inputs, self._declared.outputs, module.inputs)
        entries = self._options._entries
        when, quick = (entries.get(key, values[0]) for key, values in OWN_ENTRIES.items())
        return feeds, Programs(module, self._how, feeds, when=when, quick=quick == "1", say=self._say)

    def _say(self, message: str) -> None:
        options = self._options
        severity = _ort_logging.INFO
        if options._entries.get("tilewright.quick") == "1":
            severity = _ort_logging.WARNING
        least = options.log_severity_level
        _ort_logging.say(severity, "InferenceSession", message, least=least, name=options.logid)

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("_model", "_options", "_providers", "_wanted")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def get_inputs(self) -> list[NodeArg]:
        """What a run takes."""
        ports = {port.name: port for port in self._feeds.ports}
        return [self._feeds.described(ports[name]) for name in self._feeds.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """What a run gives; compiles a model that does not say it, where no run has.

        Raises:
            tilewright.InputError: if sizes have to be known first.
        """
        said = [declared(one, self._dims) for one in self._declared.outputs]
        known = [one for one in said if one is not None]
        if len(known) == len(said):
            return known
        executable = self._programs.any()
        names = self._feeds.output_names(executable.output_names)
        return [self._feeds.described(port) for port in executable.outputs if port.name in names]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The weights that a run may be given others for."""
        weights = [one for one in self._declared.inputs if one.name in self._declared.weights]
        return [NodeArg(one.name, one.type, one.shape or ()) for one in weights]

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
        self._providers = checked_providers(providers, provider_options)

    def enable_fallback(self) -> None:
        """Lets another provider run what one fails at: there is one."""

    def disable_fallback(self) -> None:
        """Lets no other provider run what one fails at: there is one."""

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """What providers measured: the CPU's measures nothing. See :mod:`tilewright.tuning`."""
        return []

    def set_tuning_results(
        self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False
    ) -> None:
        """Takes what providers measured: no provider here takes any.

        Raises:
            RuntimeError: with ``error_on_invalid``, if there is anything.
        """
        if error_on_invalid and results:
            raise RuntimeError(f"Cannot find execution provider {results[0].get('ep')}")

    def executable(self, feed: Mapping[str, Array]) -> Executable:
        """The executable for these inputs.

        Raises:
            tilewright.InputError: for inputs that do not fit.
            tilewright.Error: those of compiling it.
        """
        feeds, programs = self._taking(feed)
        return programs.of(self._arrays(feeds, feed))

    def _taking(self, feed: Mapping[str, Array]) -> tuple[Feeds, Programs]:
        """Inputs and executables for the inputs of these names, weights among them."""
        weights = {one.name for one in self._declared.inputs if one.name in self._declared.weights}
        names = {*self._feeds.inputs, *weights}
        unknown = [name for name in feed if name not in names]
        if unknown:
            raise InputError(
                f"there is no input `{unknown[0]}`; the inputs are: {', '.join(self._feeds.inputs)}"
            )
        missing = self._feeds.missing(feed)
        if missing:
            raise InputError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        given = frozenset(name for name in feed if name in weights)
        if not given:
            return self._feeds, self._programs
        with self._lock:
            if given not in self._with_inputs:
                module = load(with_weights(self._content, given, {}))
                self._with_inputs[given] = self._programs_of(module, given)
            return self._with_inputs[given]

    def _arrays(self, feeds: Feeds, feed: Mapping[str, Array]) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        for name, value in feed.items():
            arrays.update(feeds.arrays(name, value))
        return arrays

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
        return self._run_into(output_names, input_feed, run_options, {})

    def _run_into(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Array],
        run_options: RunOptions | None,
        memories: Mapping[str, Array | None],
    ) -> list[Any]:
        """Runs it, and writes outputs into the arrays of their names where it can."""
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise TypeError(f"run_options is a RunOptions, not {type(run_options).__name__}")
        if run_options is not None and run_options.terminate:
            raise ExecutionError("Exiting due to terminate flag being set to true.")
        if isinstance(output_names, (str, bytes)):
            raise TypeError("the names of outputs are a list")
        feeds, programs = self._taking(input_feed)
        feed = self._arrays(feeds, input_feed)
        executable = programs.of(feed)
        names = feeds.output_names(executable.output_names)
        missing = [name for name in output_names or () if name not in names]
        if missing:
            raise InputError(f"there is no output `{missing[0]}`; the outputs are: {', '.join(names)}")
        taken = set(executable.input_names)
        given = {name: x for name, x in feed.items() if name in taken}
        start = time.perf_counter_ns()
        outs = [memories.get(name) for name in executable.output_names]
        made = executable._run_into((), given, outs)
        if self._events is not None:
            self._measured(executable, given, time.perf_counter_ns() - start)
        listed = [out if result is None else result for out, result in zip(outs, made)]
        arrays = dict(zip(executable.output_names, listed))
        return [feeds.value(arrays, name) for name in output_names or names]

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
            ValueError: for what another session bound.
        """
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        iobinding._run(lambda names, feed, outs: self._run_into(names, feed, run_options, outs))

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
