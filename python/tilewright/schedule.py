"""Schedules: how the loops of a function run, and how its buffers lie in memory.

The methods of :class:`Schedule` are the primitives of the compiler's own table, with its
documentation; ``tilewright.Schedule.split?`` in a notebook shows it.

>>> import tilewright
>>> module = tilewright.parse('''
... @T.prim_func
... def double(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
...     for i in range(14):
...         with T.block("B"):
...             vi = T.axis.spatial(14, i)
...             B[vi] = A[vi] * T.float32(2)
... ''')
>>> sch = tilewright.Schedule(module, change_interface=True)
>>> sch.transform_layout("B", "B", lambda i: [i // 4, i % 4], pad_value=0.0)
>>> [p.shape for p in sch.module.inputs]
[(14,), (4, 4)]
>>> print(sch.trace, end="")
def apply_trace(sch):
    sch.transform_layout(block="B", buffer="B", index_map=lambda i: [i // 4, i % 4], pad_value=0.0)
"""

from __future__ import annotations

import ast
import inspect
from typing import Any, Callable

from . import _native
from ._types import Primitive
from .errors import InputError
from .module import Module

__all__ = ["AXIS_SEPARATOR", "Schedule"]


class _Separator:
    """Ends a group of axes that become one physical axis."""

    def __repr__(self) -> str:
        return "AXIS_SEPARATOR"


#: Among the results of an index map: ends a group of axes that become one physical axis.
AXIS_SEPARATOR = _Separator()


def traced(function: Callable[..., Any]) -> _native.Lambda:
    """A Python function of indices as an index map or a pad value.

    Raises:
        tilewright.InputError: if the number of its parameters is not fixed.
    """
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind not in kinds for p in parameters):
        raise InputError(
            "a function of indices takes each of them by a name",
            help="write `lambda i, j: ...` instead of `lambda *indices: ...`",
        )
    return _native.Lambda(function, [p.name for p in parameters], AXIS_SEPARATOR)


def _converted(value: Any) -> Any:
    """An argument as the extension takes it: functions of indices are traced."""
    if isinstance(value, (list, tuple)):
        return [_converted(v) for v in value]
    if callable(value) and not isinstance(value, (_native.Lambda, _native.Expr)):
        return traced(value)
    return value


class Schedule:
    """A module under a schedule; each primitive changes it, or refuses and changes nothing.

    Args:
        module: The module to begin with.
        change_interface: Whether parameters of functions may be laid out, too. Who calls them then
            has to follow.
    """

    __slots__ = ("_raw",)

    def __init__(self, module: Module, *, change_interface: bool = False) -> None:
        self._raw = _native.Schedule(module._raw, change_interface)

    @property
    def module(self) -> Module:
        """The module as it is now."""
        return Module(self._raw.module())

    @property
    def trace(self) -> str:
        """What was done, as a script: :meth:`run_script` runs it again."""
        return self._raw.trace()

    def run_script(self, text: str, *, name: str = "<schedule>") -> None:
        """Runs a schedule script, such as a trace.

        Raises:
            tilewright.Error: those of reading it and of the primitives, with the place in the text.
                What was done before stays.
        """
        self._raw.run_script(text, name)

    def __repr__(self) -> str:
        return f"<Schedule of {self.module!r}>"

    def _repr_html_(self) -> str:
        return self.module._repr_html_()


def _parameter(names: list[str], rest: bool, default: str | None) -> inspect.Parameter:
    kind = inspect.Parameter.VAR_POSITIONAL if rest else inspect.Parameter.POSITIONAL_OR_KEYWORD
    empty = inspect.Parameter.empty
    value: Any = empty
    if default is not None and not rest:
        try:
            value = ast.literal_eval(default)
        except (ValueError, SyntaxError):
            value = default
    return inspect.Parameter(names[0], kind, default=value)


def _method(row: Primitive) -> Callable[..., Any]:
    name, _, summary, params, flags, returns, is_list = row

    def method(self: Schedule, *args: Any, **kwargs: Any) -> Any:
        given = {key: _converted(value) for key, value in kwargs.items()}
        return self._raw.call(name, tuple(_converted(a) for a in args), given)

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    needed = max((k for k, p in enumerate(params) if p[3] is None and not p[1]), default=-1)
    for k, (names, rest, _, default) in enumerate(params):
        # In front of one that has to be given, None stands for the default.
        parameters.append(_parameter(names, rest, None if k < needed else default))
    after_rest = any(rest for _, rest, _, _ in params)
    kind = inspect.Parameter.KEYWORD_ONLY if after_rest else inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters += [inspect.Parameter(flag, kind, default=value) for flag, value in flags]
    lines = [summary, "", "Args:"]
    for names, _, takes, default in params:
        also = f" Also called {', '.join(names[1:])}." if len(names) > 1 else ""
        left_out = "" if default is None else f" The default is {default}."
        lines.append(f"    {names[0]}: {takes[:1].upper()}{takes[1:]}.{left_out}{also}")
    for flag, value in flags:
        lines.append(f"    {flag}: A switch of TVM's traces; {value} is what happens anyway.")
    if len(lines) == 3:
        lines = lines[:1]
    if returns:
        lines += ["", "Returns:", f"    {'A list of ' if is_list else 'The '}{returns}."]
    lines += ["", "Raises:", "    tilewright.RefusedError: where it would change what is computed."]
    method.__name__ = name
    method.__qualname__ = f"Schedule.{name}"
    method.__doc__ = "\n".join(lines) + "\n"
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method


for _row in _native.primitives():
    _made = _method(_row)
    for _name in (_row[0], *_row[1]):
        setattr(Schedule, _name, _made)
del _row, _made, _name
