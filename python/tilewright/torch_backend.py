"""``torch.compile(model, backend="tilewright")``: PyTorch's graphs through ONNX.

PyTorch finds the backend by the entry point of this package. AOTAutograd makes pure functions of what
PyTorch captured, one for the values and one for the gradients; each is exported to ONNX and compiled,
with the sizes open that PyTorch leaves open. Parameters and buffers are inputs of each call, as are
tensors: what changes them is seen, and weights that a call writes (running statistics) are written.
Arrays are shared and not copied.

Weights of modules that :func:`tilewright.freeze` was called for are constants, which are folded and
packed once; so are all weights with ``options={"freeze": True}``, in calls that compute no gradients.

A graph that cannot be exported or compiled runs as PyTorch runs it, with a warning.

It needs the packages ``torch``, ``onnx`` and ``onnxscript``: ``pip install tilewright[torch]``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

import numpy as np

from .errors import Error, InputError, UnsupportedError
from .executable import Executable
from .freezing import is_frozen
from .module import Module, load, parse

for _name in ("torch", "onnx", "onnxscript"):
    if importlib.util.find_spec(_name) is None:
        _what = f"the backend of torch.compile needs {_name}: pip install tilewright[torch]"
        raise ModuleNotFoundError(_what, name=_name)

import torch  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from . import _torch_decompositions, _torch_graph, _torch_translations  # noqa: E402

__all__ = ["tilewright_backend"]

#: Sets of frozen weights, or of sizes, that a graph is kept for.
KEPT = 8

#: A compiled graph, in the way that AOTAutograd calls one: with a list that it may empty.
_Compiled = Callable[[list[Any]], Sequence[Any]]


def tilewright_backend(
    graph: Any, example_inputs: list[Any], *, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend, as ``torch.compile`` calls it.

    Args:
        graph: The captured graph.
        example_inputs: Inputs that it was captured with.
        options: How it is compiled, as :meth:`tilewright.Module.compile` takes it, and ``freeze``:
            whether parameters and buffers are constants in calls that compute no gradients.

    Raises:
        tilewright.InputError: for options that there are not.
    """
    given = dict(options or {})
    freeze = given.pop("freeze", False)
    _check(given)
    weights = [x for x in example_inputs if _is_weight(x)] if freeze else []

    def differentiated(module: Any, inputs: Sequence[Any]) -> _Compiled:
        return _boxed(_compiled(module, given))

    def inference(module: Any, inputs: Sequence[Any]) -> _Compiled:
        freezing = _Freezing(module, given, weights)
        if not any(_is_weight(x) and (freeze or is_frozen(x)) for x in example_inputs):
            freezing.prepare()
        return _boxed(freezing)

    compiler = aot_autograd(
        fw_compiler=differentiated,
        bw_compiler=differentiated,
        inference_compiler=inference,
        decompositions=_torch_decompositions.table(),
        keep_inference_input_mutations=False,
    )
    trains = torch.is_grad_enabled() and any(
        isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs
    )
    # Fused kernels of attention, and of recurrent layers in training, have gradients of their own, which
    # no exporter knows.
    with sdpa_kernel([SDPBackend.MATH]), _without_onednn(trains):
        return compiler(graph, example_inputs)  # type: ignore[no-any-return]


@contextlib.contextmanager
def _without_onednn(wanted: bool) -> Iterator[None]:
    """Has PyTorch take no kernels of oneDNN when it takes operators apart, if that is wanted."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(before and not wanted)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _is_weight(value: Any) -> bool:
    """Whether an input of a captured graph is a parameter or buffer of a module."""
    return isinstance(value, torch.nn.Parameter) or bool(getattr(value, "_dynamo_static_input_type", None))


#: A module that is as small as can be: options are checked on it.
_SMALL = """
@T.prim_func
def f(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32")):
    B[0] = A[0]
"""


def _check(options: dict[str, Any]) -> None:
    """Refuses options that there are not, before PyTorch's graphs would hide the reason."""
    known = [
        *(set(inspect.signature(Module.compile).parameters) - {"self", "dims", "shapes", "values"}),
        "freeze",
    ]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise InputError(f"there is no option `{unknown[0]}`; the options are: {', '.join(sorted(known))}")
    plain = {name: x for name, x in options.items() if name not in ("progress", "specialize")}
    parse(_SMALL)._raw.after("fuse", **plain)


def _boxed(compiled: _Compiled) -> _Compiled:
    """The same as AOTAutograd wants it: a function that says that it takes a list."""

    def run(args: list[Any]) -> Sequence[Any]:
        return compiled(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _compiled(module: Any, options: dict[str, Any], fixed: dict[int, Any] | None = None) -> _Compiled:
    """A graph for its inputs; PyTorch's own where it cannot be compiled."""
    try:
        return _Native(module, options, fixed or {})
    except Exception as error:  # What the exporter raises is not its interface.
        return _left_to_pytorch(module, error)


def _left_to_pytorch(module: Any, error: Exception) -> _Compiled:
    """The graph as PyTorch runs it, with the reason as a warning."""
    first: BaseException = error
    while first.__cause__ is not None:
        first = first.__cause__
    said = [line for line in str(first).splitlines() if line.strip()]
    reason = said[0] if said else ""
    if not isinstance(first, (Error, _torch_graph.NotCompiledError)):
        reason = f"{type(first).__name__}: {reason}"
    warnings.warn(f"tilewright: a graph stays PyTorch's: {reason}", stacklevel=2)
    return _Interpreted(module)


class _Interpreted:
    """A graph as PyTorch runs it."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __call__(self, args: list[Any]) -> Sequence[Any]:
        """Runs on inputs."""
        given = list(args)
        args.clear()
        return self._module(*given)  # type: ignore[no-any-return]


class _Freezing:
    """A graph that computes no gradients; what is frozen of its inputs becomes constants.

    A frozen weight that was replaced, or written in a way that PyTorch counts, is taken anew.

    Args:
        module: The graph.
        options: How it is compiled.
        weights: Inputs of the captured graph that are frozen without being marked.
    """

    def __init__(self, module: Any, options: dict[str, Any], weights: list[Any]) -> None:
        self._module = module
        self._options = options
        self._weights = {id(x) for x in weights}
        # They stay alive, so that no other tensor gets their identity.
        self._alive = weights
        self._plain: _Compiled | None = None
        self._kept: dict[Any, tuple[list[tuple[Any, Any]], _Compiled]] = {}

    def prepare(self) -> None:
        """Compiles it for weights none of which is frozen."""
        self._plain = _compiled(self._module, self._options)

    def _compiled_now(self, constants: dict[int, Any]) -> _Compiled:
        """Compiles during a call.

        That is on another thread, since AOTAutograd sets what PyTorch dispatches to for the thread that
        calls.
        """
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(_compiled, self._module, self._options, constants).result()

    def __call__(self, args: list[Any]) -> Sequence[Any]:
        """Runs on inputs."""
        fixed = {
            k: x
            for k, x in enumerate(args)
            if isinstance(x, torch.Tensor) and (is_frozen(x) or id(x) in self._weights)
        }
        if not fixed:
            if self._plain is None:
                self._plain = self._compiled_now({})
            return self._plain(args)
        key = tuple((k, id(x), _version(x), x.data_ptr()) for k, x in fixed.items())
        found = self._kept.get(key)
        if found is None:
            constants = {k: x.detach().clone() for k, x in fixed.items()}
            # Tensors and memory stay alive, so that nothing else gets their identity or address.
            alive = [(x, x.detach()) for x in fixed.values()]
            found = alive, self._compiled_now(constants)
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = found
        return found[1](args)


def _version(tensor: Any) -> int:
    """How often PyTorch says that a tensor was written; inference tensors do not count."""
    return 0 if tensor.is_inference() else int(tensor._version)


class _Native:
    """A graph as native code.

    Args:
        module: The graph.
        options: How it is compiled.
        fixed: The values of inputs, by position, that are constants.

    Raises:
        _torch_graph.NotCompiledError: for a graph that is left to PyTorch.
        tilewright.Error: those of reading and compiling it; those of PyTorch's exporter.
    """

    def __init__(self, module: Any, options: dict[str, Any], fixed: dict[int, Any]) -> None:
        module, self._draw = _torch_graph.random_inputs(module)
        _torch_graph.refuse(module)
        self._split = _torch_graph.split(module)
        self._module = module
        self._fallback: _Compiled | None = None
        # What the exporter gets wrong shows at the first run.
        self._is_compared = False
        if not self._split.axes:
            raise _torch_graph.NotCompiledError("it computes nothing")
        program, free = _torch_graph.exported(module, self._split.graph, fixed)
        read = _read(program, [_name_of(k) for k in free], len(self._split.axes))
        try:
            self._call: Callable[..., Any] = read.compile(**options)
        except (InputError, UnsupportedError):
            if all(isinstance(size, int) for port in read.inputs for size in port.shape or ()):
                raise
            self._call = _ForSizes(read, options)
        names = {port.name for port in read.inputs}
        self._taken = [(k, _name_of(k)) for k in free if _name_of(k) in names]

    def __call__(self, args: list[Any]) -> Sequence[Any]:
        """Runs on inputs."""
        given = [*args, *self._draw(*args)]
        args.clear()
        if self._fallback is not None:
            return self._fallback(given)
        arrays = {name: _array(given[k]) for k, name in self._taken}
        try:
            outputs = self._call(**arrays)
        except (InputError, UnsupportedError) as error:
            # Only sizes that were not known before.
            self._fallback = _left_to_pytorch(self._module, error)
            return self._fallback(given)
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        tensors = [_tensor(x, axes) for x, axes in zip(listed, self._split.axes)]
        if not self._is_compared:
            self._is_compared = True
            reason = self._difference(given, tensors)
            if reason is not None:
                self._fallback = _left_to_pytorch(self._module, _torch_graph.NotCompiledError(reason))
                return self._fallback(given)
        sizes = self._split.sizes(*given)
        sources: dict[str, Any] = {"tensor": tensors, "input": given, "size": sizes}
        return [x if kind == "constant" else sources[kind][x] for kind, x in self._split.order]

    def _difference(self, given: list[Any], tensors: list[Any]) -> str | None:
        """What PyTorch computes otherwise for these inputs; ``None`` where the values are the same."""
        expected = self._module(*given)
        numbers = [x for x in (*given, *expected) if isinstance(x, torch.Tensor) and x.is_floating_point()]
        largest = max((_largest(x) for x in numbers), default=0.0)
        for (kind, k), value in zip(self._split.order, expected):
            if kind == "tensor" and not _is_close(tensors[k], value, largest):
                return (
                    "its values are not those of PyTorch, which may be a fault of the exporter or of tilewright"
                )
        return None


#: What rounding may change of a result, as a part of its largest element, by element type.
_ROUNDING = {torch.float64: 1e-8, torch.float32: 2e-3, torch.float16: 3e-2, torch.bfloat16: 0.2}


def _largest(tensor: Any) -> float:
    """The largest finite magnitude in a tensor."""
    finite = tensor.detach()[tensor.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _is_close(got: Any, expected: Any, largest: float) -> bool:
    """Whether two tensors are the same but for rounding, which may decide a few choices.

    Args:
        got: What is looked at.
        expected: What it should be.
        largest: The largest number that took part: what remains of it where sums cancel is no value.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    if not expected.is_floating_point():
        return bool((got != expected).sum() * 100 <= expected.numel())
    finite = expected.isfinite()
    odd, same = expected[~finite], got[~finite]
    if not bool(((same == odd) | (same.isnan() & odd.isnan())).all()):
        return False
    error = float((got[finite].double() - expected[finite].double()).abs().max()) if finite.any() else 0.0
    rounding = _ROUNDING.get(expected.dtype, 0.2)
    remains = 64 * torch.finfo(expected.dtype).eps * largest
    return bool(error <= max(rounding * _largest(expected), remains))


class _ForSizes:
    """A module that needs its sizes: it is compiled for those of each call, the last of which are kept."""

    def __init__(self, module: Module, options: dict[str, Any]) -> None:
        self._module = module
        self._options = options
        self._kept: dict[Any, Executable] = {}

    def __call__(self, **arrays: Any) -> Any:
        """Runs on arrays."""
        shapes = {name: tuple(x.shape) for name, x in arrays.items()}
        key = tuple(shapes.values())
        found = self._kept.pop(key, None)
        if found is None:
            found = self._module.compile(shapes=shapes, **self._options)
        self._kept[key] = found
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found(**arrays)


def _name_of(position: int) -> str:
    """The name of an input of an exported graph; nodes of graphs have no such names."""
    return f"tilewright_input_{position}"


def _read(program: Any, names: list[str], count: int) -> Module:
    """The module of an exported program."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # The exporter warns of what is its own matter.
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "graph.onnx")
        outputs = [f"tilewright_output_{k}" for k in range(count)]
        made = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            input_names=names,
            output_names=outputs,
            custom_translation_table=_torch_translations.table(),
        )
        if made is None:
            raise RuntimeError("PyTorch gave no model")
        made.save(path)
        return load(path)


def _array(value: Any) -> Any:
    """An input as an executable takes it."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, np.int64)
    plain = value.detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    return plain.contiguous()


def _tensor(array: Any, axes: tuple[int, ...] | None) -> Any:
    """An output as a tensor whose axes lie in memory in an order."""
    if array.dtype.kind == "V":
        # NumPy lends no bfloat16 of its own.
        tensor = torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_dlpack(array)
    if axes is None:
        return tensor
    inverse = [axes.index(axis) for axis in range(len(axes))]
    return tensor.permute(axes).contiguous().permute(inverse)
