"""Functions whose Python source is TVMScript.

>>> import numpy as np, tilewright
>>> from tilewright import T
>>> module = tilewright.script('''
... @T.prim_func
... def triple(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
...     for i in range(4):
...         with T.block("B"):
...             vi = T.axis.spatial(4, i)
...             B[vi] = A[vi] * T.float32(3)
... ''')
>>> module(np.ones(4, np.float32))
array([3., 3., 3., 3.], dtype=float32)
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any, Callable, overload

from .errors import InputError
from .function import Function
from .module import parse

__all__ = ["I", "R", "T", "script"]


class _Anything:
    """Stands for what TVMScript calls, while Python defines a function: nothing is run."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # As a decorator, it leaves the function or class as it is.
        if len(args) == 1 and not kwargs and (inspect.isfunction(args[0]) or inspect.isclass(args[0])):
            return args[0]
        return self

    def __getitem__(self, item: Any) -> _Anything:
        return self

    def __repr__(self) -> str:
        return self._name


#: The names of TVMScript, for functions under :func:`script`.
T: Any = _Anything("T")
R: Any = _Anything("R")
I: Any = _Anything("I")  # noqa: E741


def _constants(target: Any, names: set[str]) -> dict[str, str]:
    """Numbers and truth values around a function, by the names that it uses."""
    if not inspect.isfunction(target):
        known: dict[str, Any] = vars(inspect.getmodule(target) or object)
    else:
        closure = inspect.getclosurevars(target)
        known = {**target.__globals__, **closure.globals, **closure.nonlocals}
        cells = zip(target.__code__.co_freevars, target.__closure__ or ())
        for name, cell in cells:
            known[name] = cell.cell_contents
    plain = {n: known[n] for n in names if n in known}
    return {n: repr(v) for n, v in plain.items() if isinstance(v, (bool, int, float))}


def _source(target: Any, locals_: dict[str, Any]) -> tuple[str, str]:
    """The text of a function or class with the constants that it uses, and the name of its file."""
    try:
        lines, first = inspect.getsourcelines(target)
        name = inspect.getsourcefile(target) or "<script>"
    except (OSError, TypeError) as error:
        raise InputError(
            "the source of the function is not known",
            help="define it in a file or a cell of a notebook, or give its text",
        ) from error
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text)
    body = tree.body[0]
    if not isinstance(body, (ast.FunctionDef, ast.ClassDef)):
        raise InputError("a script is a function or a class")
    # Decorators of this module go; those of TVMScript stay.
    rows = text.splitlines(keepends=True)
    for decorator in body.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if word == "script":
            for row in range(decorator.lineno - 1, decorator.end_lineno or decorator.lineno):
                rows[row] = "\n"
    own = {
        node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } | {a.arg for node in ast.walk(body) if isinstance(node, ast.arguments) for a in node.args}
    uses = [
        node
        for node in ast.walk(body)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own
    ]
    known = _constants(target, {node.id for node in uses})
    known.update({n: repr(v) for n, v in locals_.items() if isinstance(v, (bool, int, float)) and n not in own})
    # From the end, so that places before stay where they are.
    for node in sorted(uses, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        if node.id in known:
            line = rows[node.lineno - 1].encode()
            end = node.end_col_offset or node.col_offset
            line = line[: node.col_offset] + f"({known[node.id]})".encode() + line[end:]
            rows[node.lineno - 1] = line.decode()
    is_function = isinstance(body, ast.FunctionDef)
    decorated = any(not row.isspace() for row in rows[: body.lineno - 1])
    if is_function and not decorated:
        # Between the lines, so that lines keep their numbers.
        rows[body.lineno - 1] = f"@T.prim_func\n{rows[body.lineno - 1]}"
        first -= 1
    return "\n" * (first - 1) + "".join(rows), name


@overload
def script(target: Callable[..., Any] | str | type, **options: Any) -> Function: ...


@overload
def script(**options: Any) -> Callable[[Any], Function]: ...


def script(target: Any = None, **options: Any) -> Any:
    """Makes a function of arrays of a Python function whose source is TVMScript.

    The body of the function is read and never run by Python. Numbers around it may be used by their
    names. Sizes that it leaves open come from the arrays of each call.

    Args:
        target: The function (or class, for a module), under ``@tilewright.script``; or text.
        options: How it is compiled, as :meth:`tilewright.Module.compile` takes it.

    Raises:
        tilewright.SyntaxError: with the place, where it is no TVMScript.
        tilewright.InputError: where the source is not known.
    """
    frame = inspect.currentframe()
    around = dict(frame.f_back.f_locals) if frame is not None and frame.f_back is not None else {}

    def make(target: Any) -> Function:
        if isinstance(target, str):
            return Function(parse(target, name="<script>"), **options)
        text, name = _source(target, around)
        made = Function(parse(text, name=name), **options)
        made.__doc__ = inspect.getdoc(target)
        return made

    return make if target is None else make(target)
