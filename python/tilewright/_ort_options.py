"""Options of ONNX Runtime's sessions and runs: names that there are not are refused, as is what is no value.

Most of them say how ONNX Runtime's own machinery works, and change nothing here; :class:`SessionOptions`
says which mean something.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable
from typing import Any, ClassVar

from ._ort_values import OrtValue
from .errors import UnsupportedError

__all__ = [
    "OWN_ENTRIES",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "RunOptions",
    "SessionOptions",
]


class _Named(enum.IntEnum):
    """A number that is written as its name."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class GraphOptimizationLevel(_Named):
    """How much a graph is changed: layouts are planned at ``ORT_ENABLE_LAYOUT`` and above."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Named):
    """Whether nodes run beside each other; here, threads share each."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Named):
    """In which order nodes run; here, the order of the plan."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


#: Entries of a session's configuration.
_SESSION_ENTRIES = frozenset(
    [
        "memory.enable_memory_arena_shrinkage",
        "mlas.disable_kleidiai",
        "mlas.enable_gemm_fastmath_arm64_bfloat16",
        "mlas.use_lut_gemm",
        "optimization.constant_folding_max_output_size_in_bytes",
        "optimization.disable_specified_optimizers",
        "optimization.enable_cast_chain_elimination",
        "optimization.enable_gelu_approximation",
        "optimization.minimal_build_optimizations",
        "session.allow_released_opsets_only",
        "session.collect_node_memory_stats_to_file",
        "session.compile_only",
        "session.debug_layout_transformation",
        "session.disable_aot_function_inlining",
        "session.disable_cpu_ep_fallback",
        "session.disable_double_qdq_remover",
        "session.disable_model_compile",
        "session.disable_prepacking",
        "session.disable_qdq_constant_folding",
        "session.disable_quant_qdq",
        "session.dynamic_block_base",
        "session.enable_dq_matmulnbits_fusion",
        "session.enable_quant_qdq_cleanup",
        "session.fail_on_suboptimal_compiled_model",
        "session.force_spinning_stop",
        "session.graph_optimizations_loop_level",
        "session.inter_op.allow_spinning",
        "session.intra_op.allow_spinning",
        "session.intra_op_thread_affinities",
        "session.layer_assignment_settings",
        "session.load_model_format",
        "session.log_id",
        "session.max_shape_override",
        "session.model_external_initializers_file_folder_path",
        "session.node_partition_config_file",
        "session.optimized_model_external_initializers_file_name",
        "session.optimized_model_external_initializers_min_size_in_bytes",
        "session.qdq_matmulnbits_accuracy_level",
        "session.qdq_matmulnbits_block_size",
        "session.qdqisint8allowed",
        "session.record_ep_graph_assignment_info",
        "session.resource_cuda_partitioning_settings",
        "session.save_external_prepacked_constant_initializers",
        "session.save_model_format",
        "session.set_denormal_as_zero",
        "session.strict_shape_type_inference",
        "session.use_device_allocator_for_initializers",
        "session.use_env_allocators",
        "session.use_ort_model_bytes_directly",
        "session.use_ort_model_bytes_for_initializers",
    ]
)

#: Entries that are this package's own, with their values; the first is the default.
OWN_ENTRIES: dict[str, tuple[str, ...]] = {
    "tilewright.compile": ("session", "background", "first_run"),
    "tilewright.quick": ("0", "1"),
}

#: Entries of a run's configuration.
_RUN_ENTRIES = frozenset(
    [
        "memory.enable_memory_arena_shrinkage",
        "disable_synchronize_execution_providers",
        "gpu_graph_id",
        "qnn.htp_perf_mode",
        "qnn.htp_perf_mode_post_run",
        "qnn.rpc_control_latency",
        "kvcache_rewind",
    ]
)

_LONGEST_KEY = 1024
_LONGEST_VALUE = 8192


def _meant(name: str, among: Iterable[str]) -> str:
    """The end of a message that offers the name that was meant."""
    near = difflib.get_close_matches(name, list(among), 1, 0.85 if "." in name else 0.75)
    return f"; did you mean '{near[0]}'?" if near else ""


class _Options:
    """Fields that exist, with values of their types, and entries by name."""

    _FIELDS: ClassVar[dict[str, Any]]
    _KNOWN: ClassVar[frozenset[str]]
    _entries: dict[str, str]

    def __init__(self) -> None:
        for name, value in self._FIELDS.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_entries", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._FIELDS:
            what = f"'{type(self).__name__}' object has no attribute '{name}'"
            raise AttributeError(what + _meant(name, self._FIELDS))
        kind = type(self._FIELDS[name])
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits:
            raise TypeError(f"{name} of {type(self).__name__} is {kind.__name__}, not {type(value).__name__}")
        object.__setattr__(self, name, value)

    def _add(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("an entry is a name and a text")
        if not 0 < len(key) <= _LONGEST_KEY:
            raise RuntimeError(f"Config key is empty or longer than maximum length {_LONGEST_KEY}")
        if len(value) > _LONGEST_VALUE:
            raise RuntimeError(f"Config value is longer than maximum length: {_LONGEST_VALUE}")
        if key not in self._KNOWN and not key.startswith("ep."):
            kind = type(self).__name__
            raise RuntimeError(f"{kind} does not know the configuration key: {key}{_meant(key, self._KNOWN)}")
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


class SessionOptions(_Options):
    """How a session runs.

    These mean something: ``intra_op_num_threads`` (0 or less for one a core), ``graph_optimization_level``,
    ``enable_profiling`` with ``profile_file_prefix``, ``log_severity_level`` and ``logid``, sizes by
    ``add_free_dimension_override_by_name`` and ``_by_denotation``, and weights by ``add_initializer``. The
    others may be set as in ONNX Runtime, and results do not depend on them.

    Two entries are this package's own. ``tilewright.compile`` says when a model is compiled: ``session``, as
    the session is made, for all sizes; ``background``, on another thread from then on, so that the first run
    waits for what is left; ``first_run``, for the sizes of the first run, and for all sizes where others
    come. What is compiled for all sizes may take half as long again as what is compiled for its own: where
    they do not change, ``first_run`` or sizes by name are faster. With ``tilewright.quick`` as ``1``, the
    first runs are those of a compilation that takes a tenth of the time, and whose runs take some ten times
    as long, until the better one is ready on another thread; a message says when.
    """

    intra_op_num_threads: int
    inter_op_num_threads: int
    graph_optimization_level: GraphOptimizationLevel
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    enable_profiling: bool
    profile_file_prefix: str
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    use_deterministic_compute: bool
    use_per_session_threads: bool
    _dims: dict[str, int]
    #: Sizes by what the model says that they mean.
    _denotations: dict[str, int]
    #: Weights by name.
    _weights: dict[str, Any]

    _FIELDS: ClassVar[dict[str, Any]] = {
        "intra_op_num_threads": 0,
        "inter_op_num_threads": 0,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "enable_profiling": False,
        "profile_file_prefix": "onnxruntime_profile_",
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }
    _KNOWN: ClassVar[frozenset[str]] = (
        _SESSION_ENTRIES | {f"session.{name}" for name in _FIELDS} | OWN_ENTRIES.keys()
    )

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_dims", {})
        object.__setattr__(self, "_denotations", {})
        object.__setattr__(self, "_weights", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "optimized_model_filepath" and value:
            raise UnsupportedError(
                "a model is not written back as ONNX: `tilewright.Executable.save` writes it"
            )
        super().__setattr__(name, value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry of the configuration; the name must be one of ONNX Runtime's.

        Raises:
            RuntimeError: for a name that there is not.
        """
        if value not in OWN_ENTRIES.get(key, (value,)):
            values = " or ".join(f"'{known}'" for known in OWN_ENTRIES[key])
            raise RuntimeError(f"the configuration {key} is {values}, not '{value}'")
        self._add(key, value)
        field = key.partition("session.")[2]
        if field in self._FIELDS:
            setattr(self, field, _parsed(key, value, type(self._FIELDS[field])))

    def get_session_config_entry(self, key: str) -> str:
        """The entry of a name.

        Raises:
            RuntimeError: where it was not set.
        """
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Settles a size that the model leaves open, by its name."""
        if size < 0:
            raise RuntimeError(f"the size of {name} is {size}")
        self._dims[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Settles sizes that the model leaves open, by what it says that they mean."""
        if size < 0:
            raise RuntimeError(f"the size of {denotation} is {size}")
        self._denotations[denotation] = int(size)

    def register_custom_ops_library(self, path: str) -> None:
        """Takes operators from a library: there is no such thing here."""
        raise UnsupportedError(f"operators of ONNX Runtime's libraries ({path}) cannot be called")

    def add_initializer(self, name: str, value: Any) -> None:
        """Gives a weight other elements: those of an :class:`OrtValue`, which are copied.

        Raises:
            RuntimeError: if the weight was given before.
        """
        if not isinstance(value, OrtValue):
            raise TypeError(f"a weight is an OrtValue, not {type(value).__name__}")
        if name in self._weights:
            raise RuntimeError(f"An OrtValue for this name has already been added: {name}")
        self._weights[name] = value.numpy()

    def add_external_initializers(self, names: list[str], values: list[Any]) -> None:
        """Gives weights that the model has elsewhere, as :meth:`add_initializer`."""
        if len(names) != len(values):
            raise RuntimeError("Expecting names and ort_values lists to have equal length")
        for name, value in zip(names, values):
            self.add_initializer(name, value)

    def has_providers(self) -> bool:
        """Whether a provider was added: none can be."""
        return False


def _parsed(key: str, value: str, kind: type) -> Any:
    """The value of a field that an entry sets."""
    try:
        if kind is bool:
            return {"0": False, "1": True}[value]
        return kind(value) if kind is str else kind(int(value))
    except (KeyError, ValueError):
        raise RuntimeError(f"the configuration {key} is {kind.__name__}, not '{value}'") from None


class RunOptions(_Options):
    """How one run goes: ``terminate`` ends it before it begins; the others change nothing."""

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    terminate: bool

    _FIELDS: ClassVar[dict[str, Any]] = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
    }
    _KNOWN: ClassVar[frozenset[str]] = _RUN_ENTRIES

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry of the configuration; the name must be one of ONNX Runtime's.

        Raises:
            RuntimeError: for a name that there is not.
        """
        self._add(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """The entry of a name.

        Raises:
            RuntimeError: where it was not set.
        """
        return self._entry(key)
