"""Plans of layouts: in which layout each call of a model is computed, and what that costs."""

from __future__ import annotations

import html as escapes
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _native
from ._types import Path
from .errors import Error
from .module import Module

__all__ = ["Layout", "Plan", "plan"]


class Layout(NamedTuple):
    """The layout of a tensor.

    Attributes:
        tensor: Its name.
        index_map: From logical to physical indices.
        shape: The logical extents; those that are open are texts.
        physical: The physical extents.
        padding: What part of the memory is padding.
        cells: Tables of cells, as HTML.
    """

    tensor: str
    index_map: str
    shape: tuple[int | str, ...]
    physical: tuple[int | str, ...]
    padding: float
    cells: tuple[str, ...]

    def _repr_html_(self) -> str:
        title = escapes.escape(f"{self.tensor}: {self.index_map}")
        style = "<style>td.p {background: #e8e8e8}</style>"
        return f"{style}<p><b>{title}</b></p>{''.join(self.cells)}"


class Plan:
    """A plan of layouts.

    Attributes:
        module: The module in these layouts.
        remarks: What could not follow, and why.
        graphs: For each graph function what was decided: its calls, tensors and conversions with
            their costs, and what the fixed layouts would cost.
    """

    def __init__(self, raw: _native.Plan, remarks: Sequence[Error], name: str) -> None:
        self._raw, self._name = raw, name
        self.module = Module(raw.module())
        self.remarks = tuple(remarks)
        self.graphs: tuple[dict[str, Any], ...] = tuple(json.loads(text) for text in raw.json())

    @property
    def cost(self) -> int:
        """What all graph functions cost, in :attr:`unit`."""
        return sum(int(graph["objective"]) for graph in self.graphs)

    @property
    def unit(self) -> str:
        """The unit of costs: cycles by estimate, nanoseconds with measurements."""
        return str(self.graphs[0]["unit"]) if self.graphs else "cycles"

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved that no choice costs less."""
        return all(graph["bound"] == graph["objective"] for graph in self.graphs)

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layout of each tensor."""
        rows = enumerate(self._raw.tensors())
        return tuple(
            Layout(name, index_map, tuple(logical), tuple(physical), padding, tuple(self._raw.cells(k)))
            for k, (name, index_map, logical, physical, padding) in rows
        )

    def what_if(self, value: str, layout: str) -> int:
        """What a plan costs in which the call that makes a value is computed in a layout.

        Raises:
            tilewright.InputError: where no call makes the value, or cannot be computed so.
        """
        return self._raw.what_if(value, layout)[1]

    def html(self) -> str:
        """The plan as a page for a browser, which loads nothing."""
        return self._raw.html(self._name)

    @property
    def drawings(self) -> tuple[str, ...]:
        """The drawing of each graph function, as SVG."""
        return tuple(self._raw.drawings())

    def save(self, path: Path) -> None:
        """Writes the page (``.html``) or the drawing of the first graph function (``.svg``)."""
        file = pathlib.Path(os.fspath(path))
        text = self.drawings[0] if file.suffix == ".svg" and self.drawings else self.html()
        file.write_text(text, encoding="utf-8")

    def __str__(self) -> str:
        lines = []
        for graph in self.graphs:
            unit = graph["unit"]
            lines.append(f"{graph['graph']}: {graph['objective']} {unit}")
            lines += [f"  {call['name']}: {call['chosen']}, {call['cost']} {unit}" for call in graph["calls"]]
            others = sorted(graph["alternatives"].items())
            lines.append("  instead of " + ", ".join(f"{name} {cost}" for name, cost in others))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Plan: {self.cost} {self.unit}>"

    def _repr_html_(self) -> str:
        page = escapes.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:600px;border:0"></iframe>'


def plan(
    module: Module,
    *,
    threads: int = 0,
    cpu: str | None = None,
    io_layout: str = "logical",
    name: str = "the model",
) -> Plan:
    """Plans the layouts of a module for the shortest time, by estimates and measurements.

    Args:
        module: A module with graph functions.
        threads: Threads of a run, for measured times; 0 for one a core.
        cpu: The processor, as LLVM calls it; ``None`` for this one.
        io_layout: ``physical`` where inputs and outputs may have other layouts than the model's own.
        name: What the page calls the model.
    """
    raw, remarks = _native.plan_layouts(module._raw, threads, cpu, io_layout)
    return Plan(raw, remarks, name)
