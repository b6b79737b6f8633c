"""Graphs that AOTAutograd captured, as programs that PyTorch's ONNX exporter takes.

Such a graph is a pure function of tensors and sizes; it may give back sizes, nothing, and what it was
given. Only the tensors that it computes are exported: :class:`Split` says which these are, and how the
rest of the outputs comes about. Sizes among the inputs are read from the tensors that have them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple, Tuple, Union

import sympy
import torch
import torch.fx
from torch.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import FloorDiv, Mod

__all__ = ["NotCompiledError", "Split", "exported", "random_inputs", "refuse", "split"]


class NotCompiledError(Exception):
    """A graph that is left to PyTorch, with the reason."""


def is_size(value: Any) -> bool:
    """Whether the value of a node is a number."""
    return isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool))


def refuse(graph: torch.fx.GraphModule) -> None:
    """Refuses a graph whose values this backend would not give as PyTorch does.

    Raises:
        NotCompiledError: for memory of another device, random numbers, shapes that data decide.
    """
    for node in graph.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            if _is_random(node):
                raise NotCompiledError(f"{node.target} takes random numbers by its values")
            if node.target._schema.is_mutable:
                raise NotCompiledError(f"{node.target} changes its inputs")
        for value in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                raise NotCompiledError(f"tensors on the device {value.device}: there is only the CPU")
            if isinstance(value, torch.Tensor) and value.is_sparse:
                raise NotCompiledError("sparse tensors")
            if isinstance(value, (torch.Tensor, torch.SymInt)) and free_unbacked_symbols(value):
                raise NotCompiledError(f"data decide a size of {node.name}")


def _is_random(node: torch.fx.Node) -> bool:
    """Whether a node draws random numbers."""
    is_operator = node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    return is_operator and torch.Tag.nondeterministic_seeded in node.target.tags


#: Operators that draw random numbers and take only the shape of their first argument, or sizes.
_RANDOM = (
    torch.ops.aten.bernoulli.p,
    torch.ops.aten.rand_like.default,
    torch.ops.aten.randn_like.default,
    torch.ops.aten.rand.default,
    torch.ops.aten.randn.default,
)


def random_inputs(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, Callable[..., Any]]:
    """The graph with random numbers as further inputs, and what draws these from PyTorch's generator.

    Numbers are drawn in the order of the graph, as PyTorch does, and so are the same. Draws that depend
    on values stay where they are.
    """
    drawn = [node for node in module.graph.nodes if _is_random(node) and node.target in _RANDOM]
    if not drawn or any(_axes(node.meta["val"]) is not None for node in drawn):
        return module, _nothing
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in placeholders:
        copies[node] = graph.node_copy(node)
    draws = torch.fx.Graph()
    seen = {node: draws.node_copy(node) for node in placeholders}
    found = _symbols(list(seen.values()))
    made: dict[sympy.Expr, torch.fx.Node] = {}
    results = []
    for k, node in enumerate(drawn):
        copies[node] = graph.placeholder(f"random_{k}")
        copies[node].meta = dict(node.meta)
        value = node.meta["val"]
        sizes = [_size_of(draws, size, found, made) for size in map(_expression, value.shape)]
        if any(size is None for size in sizes):
            return module, _nothing
        rest = dict(node.kwargs)
        first: Any = sizes
        if node.target._schema.arguments[0].name == "self":
            first = draws.call_function(torch.ops.aten.empty.memory_format, (sizes,), {"dtype": value.dtype})
        results.append(draws.call_function(node.target, (first, *node.args[1:]), rest))
    draws.output(tuple(results))
    for node in module.graph.nodes:
        if node not in copies:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return torch.fx.GraphModule(module, graph), torch.fx.GraphModule({}, draws).forward


def _expression(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size


#: Where the value of a symbol is: in a size of a tensor, or in a number.
_Found = Union[Tuple[torch.fx.Node, int], torch.fx.Node]


def _symbols(placeholders: list[torch.fx.Node]) -> dict[sympy.Symbol, _Found]:
    """Where the symbols of open sizes are among inputs."""
    found: dict[sympy.Symbol, _Found] = {}
    for node in placeholders:
        value = node.meta.get("val")
        for axis, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, torch.SymInt) and isinstance(size.node.expr, sympy.Symbol):
                found.setdefault(size.node.expr, (node, axis))
    for node in placeholders:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol):
            found.setdefault(value.node.expr, node)
    return found


class Split(NamedTuple):
    """A graph in two: the tensors that it computes, and its other outputs.

    Attributes:
        graph: Gives the tensors that are computed, each once.
        sizes: Takes the inputs of the whole graph, and gives the numbers among its outputs.
        order: For each output of the whole graph where it comes from: ``("tensor", k)``, ``("input",
            k)``, ``("size", k)``, or ``("constant", value)``.
        axes: For each computed tensor the order of its axes in memory; ``None`` for row-major order.
    """

    graph: torch.fx.Graph
    sizes: Callable[..., Any]
    order: list[tuple[str, Any]]
    axes: list[tuple[int, ...] | None]


def split(module: torch.fx.GraphModule) -> Split:
    """Takes the outputs of a graph apart."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    (outputs,) = module.graph.find_nodes(op="output")[0].args
    listed = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    computed: list[torch.fx.Node] = []
    sizes: list[torch.fx.Node] = []
    order: list[tuple[str, Any]] = []
    for value in listed:
        if not isinstance(value, torch.fx.Node):
            order.append(("constant", value))
        elif value.op == "placeholder":
            order.append(("input", placeholders.index(value)))
        elif is_size(value.meta.get("val")):
            sizes.append(value)
            order.append(("size", len(sizes) - 1))
        else:
            if value not in computed:
                computed.append(value)
            order.append(("tensor", computed.index(value)))
    axes = [_axes(node.meta["val"]) for node in computed]
    return Split(_with_outputs(module, computed), _evaluator(module, sizes), order, axes)


def _axes(value: torch.Tensor) -> tuple[int, ...] | None:
    """The axes of a tensor from the largest stride to the smallest; ``None`` for row-major order."""

    def number(size: Any) -> int:
        return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)

    strides = [number(stride) for stride in value.stride()]
    if any(stride == 0 for stride in strides):
        return None
    wide = [axis for axis in range(value.dim()) if number(value.shape[axis]) != 1]
    ordered = sorted(wide, key=lambda axis: -strides[axis])
    if ordered == wide:
        return None
    # Axes of one element may be anywhere.
    rest = iter(ordered)
    return tuple(next(rest) if axis in wide else axis for axis in range(value.dim()))


def _with_outputs(module: torch.fx.GraphModule, outputs: list[torch.fx.Node]) -> torch.fx.Graph:
    """The graph with other outputs, without what these do not need."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in module.graph.nodes:
        if node.op != "output":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in outputs))
    graph.eliminate_dead_code()
    return graph


def _evaluator(module: torch.fx.GraphModule, sizes: list[torch.fx.Node]) -> Callable[..., Any]:
    if not sizes:
        return _nothing
    graph = _with_outputs(module, sizes)
    if any(node.op == "get_attr" for node in graph.nodes):
        raise NotCompiledError("a size of constants")
    return torch.fx.GraphModule({}, graph).forward  # type: ignore[no-any-return]


def _nothing(*args: Any) -> tuple[()]:
    return ()


def exported(
    module: torch.fx.GraphModule, graph: torch.fx.Graph, fixed: dict[int, Any]
) -> tuple[ExportedProgram, list[int]]:
    """The program of a graph, and which of the graph's inputs are its inputs.

    Args:
        module: What the constants of the graph are taken from.
        graph: The graph, which is changed.
        fixed: The values of inputs, by position, that are constants.

    Raises:
        NotCompiledError: for graphs with graphs inside, and constants that are no tensors.
    """
    constants: dict[str, torch.Tensor] = {}
    placeholders = list(graph.find_nodes(op="placeholder"))
    positions = {node.name: position for position, node in enumerate(placeholders)}
    for position, value in fixed.items():
        constants[placeholders[position].name] = value
    _lift(module, graph, constants)
    _sizes_of_tensors(graph)
    inputs = []
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if node.name in constants:
            inputs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), node.name))
        elif isinstance(value, torch.Tensor):
            inputs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
        elif isinstance(value, torch.SymInt):
            inputs.append(InputSpec(InputKind.USER_INPUT, SymIntArgument(node.name), None))
        elif not node.users:
            graph.erase_node(node)
        else:
            raise NotCompiledError(f"the input {node.name}, which is no tensor")
    (results,) = graph.find_nodes(op="output")[0].args
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(n.name), None) for n in results]
    free = [positions[spec.arg.name] for spec in inputs if spec.kind is InputKind.USER_INPUT]
    call = ModuleCallSignature(
        inputs=[],
        outputs=[],
        in_spec=pytree.tree_structure(((0,) * len(free), {})),
        out_spec=pytree.tree_structure((0,) * len(outputs)),
    )
    program = ExportedProgram(
        root=torch.nn.Module(),
        graph=graph,
        graph_signature=ExportGraphSignature(inputs, outputs),
        state_dict={},
        range_constraints=_ranges(graph),
        module_call_graph=[ModuleCallEntry("", call)],
        constants=constants,
    )
    return program, free


def _lift(module: torch.fx.GraphModule, graph: torch.fx.Graph, constants: dict[str, Any]) -> None:
    """Makes the constants of a graph inputs, in front of all others."""
    names = {node.name for node in graph.nodes}
    lifted: dict[str, torch.fx.Node] = {}
    for node in list(graph.find_nodes(op="get_attr")):
        value = getattr(module, node.target, None)
        if not isinstance(value, torch.Tensor):
            raise NotCompiledError(f"a graph within the graph: {node.target}")
        if node.target not in lifted:
            name = f"constant_{len(constants)}"
            while name in names:
                name += "_"
            names.add(name)
            first = next(iter(graph.nodes))
            with graph.inserting_before(first):
                lifted[node.target] = graph.placeholder(name)
            lifted[node.target].meta["val"] = node.meta.get("val", value)
            constants[lifted[node.target].name] = value
        node.replace_all_uses_with(lifted[node.target])
        graph.erase_node(node)
    # The program wants constants first.
    for node in reversed(list(graph.find_nodes(op="placeholder"))):
        if node.name in constants:
            next(iter(graph.nodes)).prepend(node)


def _ranges(graph: torch.fx.Graph) -> dict[sympy.Symbol, Any]:
    """What the open sizes of a graph may be."""
    ranges: dict[sympy.Symbol, Any] = {}
    for node in graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            numbers = value.shape if isinstance(value, torch.Tensor) else (value,)
            for number in numbers:
                if isinstance(number, torch.SymInt):
                    known = number.node.shape_env.var_to_range
                    for symbol in number.node.expr.free_symbols:
                        if symbol in known:
                            ranges[symbol] = known[symbol]
    return ranges


def _sizes_of_tensors(graph: torch.fx.Graph) -> None:
    """Reads sizes that are inputs from the tensors that have them, where there are such."""
    placeholders = list(graph.find_nodes(op="placeholder"))
    last = placeholders[-1] if placeholders else None
    if last is None:
        return
    found = {symbol: at for symbol, at in _symbols(placeholders).items() if isinstance(at, tuple)}
    made: dict[sympy.Expr, torch.fx.Node] = {}
    end = last.next
    for node in placeholders:
        value = node.meta.get("val")
        if not isinstance(value, torch.SymInt) or not value.node.expr.free_symbols <= found.keys():
            continue
        with graph.inserting_before(end):
            size = _size_of(graph, value.node.expr, found, made)
        if size is not None:
            node.replace_all_uses_with(size)
            graph.erase_node(node)


#: What the arithmetic of sizes is in a graph.
_ARITHMETIC: dict[Any, Callable[[Any, Any], Any]] = {
    sympy.Add: operator.add,
    sympy.Mul: operator.mul,
    FloorDiv: operator.floordiv,
    Mod: operator.mod,
}


def _size_of(
    graph: torch.fx.Graph,
    size: sympy.Expr,
    found: Mapping[sympy.Symbol, _Found],
    made: dict[sympy.Expr, torch.fx.Node],
) -> Any:
    """The node of a size, or the number; ``None`` for what is no polynomial, quotient or rest."""
    if isinstance(size, (int, sympy.Integer)):
        return int(size)
    if size in made:
        return made[size]
    if isinstance(size, sympy.Symbol):
        at = found.get(size)
        if not isinstance(at, tuple):
            return at
        tensor, axis = at
        node = graph.call_function(torch.ops.aten.sym_size.int, (tensor, axis))
        node.meta["val"] = tensor.meta["val"].shape[axis]
        made[size] = node
        return node
    parts, function = list(size.args), _ARITHMETIC.get(type(size))
    if isinstance(size, sympy.Pow) and size.exp.is_Integer and size.exp > 0:
        parts, function = [size.base] * int(size.exp), operator.mul
    if function is None:
        return None
    nodes = [_size_of(graph, part, found, made) for part in parts]
    if any(node is None for node in nodes):
        return None
    total = nodes[0]
    for node in nodes[1:]:
        values = [x.meta["val"] if isinstance(x, torch.fx.Node) else x for x in (total, node)]
        total = graph.call_function(function, (total, node))
        total.meta["val"] = function(*values)
    made[size] = total
    return total
