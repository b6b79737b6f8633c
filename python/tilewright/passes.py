"""Every pass as a function: ``simplify(module, option=value)`` gives what it made.

The functions are made from the compiler's own table, with its documentation. Options have types:
switches are ``bool``, numbers ``int``, the rest are names or text.

>>> import tilewright
>>> module = tilewright.parse('''
... @T.prim_func
... def f(B: T.Buffer((8,), "int32")):
...     for i in range(8):
...         if i < 9:
...             B[i] = i
... ''')
>>> simplified = tilewright.passes.simplify(module)
>>> "if" in str(simplified.module)
False
"""

from __future__ import annotations

import inspect
from typing import Any, Callable

from . import _native
from ._types import Pass
from .errors import InputError
from .module import Module, Transformed


def kind_of(values: str) -> str:
    """The type of an option by what may be given: ``bool``, ``int`` or ``str``."""
    if values == "1 or 0":
        return "bool"
    return "int" if values.startswith("a number") else "str"


def default_of(kind: str, text: str) -> bool | int | str:
    """A default, of the type that it has."""
    if kind == "bool":
        return text == "1"
    return int(text) if kind == "int" else text


def choices_of(values: str) -> tuple[str, ...]:
    """The names that may be given, for an option that is one of some names."""
    if values == "text" or kind_of(values) != "str":
        return ()
    return tuple(part for piece in values.split(", ") for part in piece.split(" or "))


def _checked(name: str, option: str, kind: str, value: Any) -> bool | int | str:
    wanted = {"bool": bool, "int": int, "str": str}[kind]
    if not isinstance(value, wanted) or (kind == "int" and isinstance(value, bool)):
        given = type(value).__name__
        raise InputError(f"the option `{option}` of `{name}` is of type {kind}, not {given}")
    return value


def _function(row: Pass) -> Callable[..., Transformed]:
    name, summary, options = row
    kinds = {option: kind_of(values) for option, _, values, _ in options}

    def run(module: Module, **given: Any) -> Transformed:
        unknown = [key for key in given if key not in kinds]
        if not unknown:
            checked = {key: _checked(name, key, kinds[key], v) for key, v in given.items()}
            return module.run_pass(name, **checked)
        # The compiler says which options there are.
        return module.run_pass(name, **{key: str(v) for key, v in given.items()})

    lines = [f"{summary[:1].upper()}{summary[1:]}.", "", "Args:", "    module: What to change."]
    lines += [
        f"    {option}: {text[:1].upper()}{text[1:]}: {values}. The default is {default or 'empty'}."
        for option, text, values, default in options
    ]
    lines += ["", "Raises:", "    tilewright.Error: where it refuses, or an option does not fit."]
    parameters = [inspect.Parameter("module", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default_of(kinds[option], default))
        for option, _, _, default in options
    ]
    run.__name__ = run.__qualname__ = name
    run.__doc__ = "\n".join(lines) + "\n"
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


__all__ = [row[0] for row in _native.passes()]

globals().update({row[0]: _function(row) for row in _native.passes()})
