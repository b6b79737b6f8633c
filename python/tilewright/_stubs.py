"""Writes the stubs of what is made from tables: ``schedule.pyi`` and ``passes.pyi``.

``python -m tilewright._stubs`` writes them; a test compares them with the tables of the extension.
"""

from __future__ import annotations

import inspect
import pathlib
import textwrap

from . import _native, passes, schedule
from ._types import Primitive

_NOTE = "# Written by `python -m tilewright._stubs` from the tables of the compiler.\n"

#: What may be given, in the words of the table, as a type.
_TYPES = {
    "a string": "str",
    "a string or None": "str | None",
    "a block": "Block | str",
    "a loop": "Loop | str",
    "a block or a loop": "Block | Loop | str",
    "a list, each a block": "Sequence[Block | str] | Block | str",
    "a list, each a loop": "Sequence[Loop | str] | Loop | str",
    "a list, each a whole number": "Sequence[int]",
    "a list, each a position from zero": "Sequence[int]",
    "a list, each a number or None": "Sequence[int | Expr | None]",
    "a list, each a number or None or None": "Sequence[int | Expr | None] | None",
    "a lambda": "Callable[..., Any] | Lambda",
    "a number, an expression or a lambda": "float | Expr | Callable[..., Any] | Lambda | None",
    "a number": "int | Expr",
    "a whole number": "int",
    "a position from zero": "int",
    "a truth value": "bool",
    "a constant": "object",
}
_POSITION = "a position, "
_BUFFER = "a position from zero, `("


def _type(takes: str) -> str:
    if takes in _TYPES:
        return _TYPES[takes]
    if takes.startswith(_BUFFER):
        return "int | str | tuple[str, int]"
    return "int" if takes.startswith(_POSITION) else "Any"


_RETURNS = {
    "": "None",
    "block": "Block",
    "loop": "Loop",
    "blocks": "list[Block]",
    "loops": "list[Loop]",
}


def _docstring(text: str | None, depth: int) -> str:
    text = inspect.cleandoc(text or "")
    ends = '"""\n' if "\n" not in text else '\n"""\n'
    return textwrap.indent(f'"""{text}{ends}', "    " * depth, lambda line: bool(line.strip()))


def _primitive(row: Primitive) -> str:
    name, aliases, _, params, flags, returns, _ = row
    parts = ["self"]
    needed = max((k for k, p in enumerate(params) if p[3] is None and not p[1]), default=-1)
    for k, (names, rest, takes, default) in enumerate(params):
        kind = _type(takes)
        if rest:
            parts.append(f"*{names[0]}: {kind}")
        elif k < needed and default is not None:
            parts.append(f"{names[0]}: {kind}" + ("" if "None" in kind else " | None"))
        else:
            parts.append(f"{names[0]}: {kind}" + ("" if default is None else " = ..."))
    parts += [f"{flag}: bool = {value}" for flag, value in flags]
    doc = getattr(schedule.Schedule, name).__doc__
    head = f"    def {name}({', '.join(parts)}) -> {_RETURNS[returns]}:\n"
    if len(head) > 101:
        inside = ",\n        ".join(parts)
        head = f"    def {name}(\n        {inside},\n    ) -> {_RETURNS[returns]}:\n"
    text = head + _docstring(doc, 2)
    return text + "".join(f"\n    {alias} = {name}\n" for alias in aliases)


def schedule_stub() -> str:
    """The text of ``schedule.pyi``."""
    source = schedule.__doc__ or ""
    head = f'''"""{source.splitlines()[0]}"""

{_NOTE}
from collections.abc import Sequence
from typing import Any, Callable

from . import _native
from ._native import Block, Expr, Lambda, Loop
from .module import Module

__all__ = ["AXIS_SEPARATOR", "Schedule"]

class _Separator: ...

AXIS_SEPARATOR: _Separator

def traced(function: Callable[..., Any]) -> Lambda:
{_docstring(schedule.traced.__doc__, 1)}
class Schedule:
{_docstring(schedule.Schedule.__doc__, 1)}
    _raw: _native.Schedule
    def __init__(self, module: Module, *, change_interface: bool = False) -> None: ...
    @property
    def module(self) -> Module:
{_docstring(schedule.Schedule.module.__doc__, 2)}
    @property
    def trace(self) -> str:
{_docstring(schedule.Schedule.trace.__doc__, 2)}
    def run_script(self, text: str, *, name: str = "<schedule>") -> None:
{_docstring(schedule.Schedule.run_script.__doc__, 2)}
    def _repr_html_(self) -> str: ...
'''
    return head + "\n" + "\n".join(_primitive(row) for row in _native.primitives())


def passes_stub() -> str:
    """The text of ``passes.pyi``."""
    source = passes.__doc__ or ""
    text = f'''"""{source.splitlines()[0]}"""

{_NOTE}
from typing import Literal

from .module import Module, Transformed

__all__: list[str]

def kind_of(values: str) -> str: ...
def default_of(kind: str, text: str) -> bool | int | str: ...
def choices_of(values: str) -> tuple[str, ...]: ...
'''
    for name, _, options in _native.passes():
        parts = ["module: Module"] + (["*"] if options else [])
        for option, _, values, default in options:
            kind = passes.kind_of(values)
            choices = passes.choices_of(values)
            shown = f"Literal[{', '.join(map(repr, choices))}]" if choices else kind
            value = passes.default_of(kind, default)
            parts.append(
                f"{option}: {shown.replace(chr(39), chr(34))} = "
                + (f'"{value}"' if isinstance(value, str) else repr(value))
            )
        inside = ",\n    ".join(parts)
        doc = getattr(passes, name).__doc__
        text += f"\ndef {name}(\n    {inside},\n) -> Transformed:\n" + _docstring(doc, 1)
    return text


def main() -> None:
    """Writes both stubs beside the modules."""
    folder = pathlib.Path(__file__).parent
    (folder / "schedule.pyi").write_text(schedule_stub(), encoding="utf-8")
    (folder / "passes.pyi").write_text(passes_stub(), encoding="utf-8")


if __name__ == "__main__":
    main()
