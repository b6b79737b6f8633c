"""``torch.compile(model, backend="tilewright")``: PyTorch's graphs through ONNX.

PyTorch finds the backend by the entry point of this package. It captures a graph, which is exported to
ONNX and compiled for the shapes that it was captured with; arrays are shared and not copied. It is for
inference: parameters count as constants, and gradients are not computed. Graphs that cannot be
exported or compiled run as PyTorch runs them, with a warning.

It needs the packages ``torch``, ``onnx`` and ``onnxscript``.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any, Callable

from .errors import Error
from .executable import Executable
from .module import load

#: Sizes that a graph is kept for.
KEPT = 16

__all__ = ["compile_graph", "tilewright_backend"]


def compile_graph(graph: Any, inputs: list[Any], **options: Any) -> tuple[Executable, tuple[str, ...]]:
    """The executable of a graph module for inputs like these, and the names of its inputs.

    Args:
        graph: A ``torch.nn.Module`` that can be exported.
        inputs: Example inputs.
        options: How it is compiled, as :meth:`tilewright.Module.compile` takes it.

    Raises:
        tilewright.Error: those of reading and compiling it; those of PyTorch's exporter.
    """
    import torch

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = os.path.join(folder, "graph.onnx")
        exported = torch.export.export(graph, tuple(inputs), strict=False)
        program = torch.onnx.export(exported, dynamo=True, verbose=False)
        if program is None:
            raise RuntimeError("PyTorch gave no model")
        program.save(path)
        module = load(path)
        names = tuple(port.name for port in module.inputs)
        return module.compile(**options), names


def tilewright_backend(
    graph: Any, example_inputs: list[Any], *, options: dict[str, Any] | None = None, **kwargs: Any
) -> Callable[..., Any]:
    """The backend, as ``torch.compile`` calls it.

    Args:
        graph: The captured graph.
        example_inputs: Inputs that it was captured with.
        options: How it is compiled, as :meth:`tilewright.Module.compile` takes it.
        **kwargs: Taken for the sake of other backends.
    """
    import torch

    if all(isinstance(x, torch.Tensor) for x in example_inputs):
        return _prepared(graph, list(example_inputs), options or {})
    # Sizes are inputs: the graph is compiled for those of each call.
    kept: dict[Any, Callable[..., Any]] = {}

    def run(*args: Any) -> Any:
        key = tuple((tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else x for x in args)
        if key not in kept:
            if len(kept) >= KEPT:
                del kept[next(iter(kept))]
            kept[key] = _prepared(graph, list(args), options or {})
        return kept[key](*args)

    return run


def _prepared(graph: Any, inputs: list[Any], options: dict[str, Any]) -> Callable[..., Any]:
    """The graph for inputs like these; PyTorch's own where it cannot be compiled."""
    import torch

    # Parameters are inputs of a captured graph in some versions; their values are constants here, as
    # are sizes.
    static = {
        k: x
        for k, x in enumerate(inputs)
        if not isinstance(x, torch.Tensor)
        or isinstance(x, torch.nn.Parameter)
        or getattr(x, "_dynamo_static_input_type", None)
    }
    free = [k for k in range(len(inputs)) if k not in static]

    class Bound(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.graph = graph
            for k, x in static.items():
                value = x.detach() if isinstance(x, torch.Tensor) else int(x)
                if isinstance(value, torch.Tensor):
                    self.register_buffer(f"constant_{k}", value)
                else:
                    setattr(self, f"constant_{k}", value)

        def forward(self, *args: Any) -> Any:
            given = dict(zip(free, args))
            everything = [
                given[k] if k in given else getattr(self, f"constant_{k}") for k in range(len(inputs))
            ]
            return self.graph(*everything)

    try:
        executable, names = compile_graph(Bound(), [inputs[k].detach() for k in free], **options)
    except (Error, RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        said = str(error).splitlines()
        warnings.warn(f"tilewright: the graph stays PyTorch's: {said[0] if said else error}", stacklevel=2)
        return graph.forward  # type: ignore[no-any-return]
    taken = [k for k, name in enumerate(names) if name in executable.input_names]

    def run(*args: Any) -> tuple[Any, ...]:
        given = [args[k] for k in free]
        arrays = [given[k].detach().contiguous() for k in taken]
        outputs = executable(*arrays)
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        return tuple(torch.from_dlpack(x) for x in listed)

    return run
