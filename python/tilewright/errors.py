"""What goes wrong, as exceptions.

Every error of the compiler is an :class:`Error`; its subclasses say what kind of thing went wrong,
and so which reaction fits. ``str(error)`` is the whole diagnostic, drawn with the source line.

>>> import tilewright
>>> try:
...     tilewright.parse("def f(:")
... except tilewright.SyntaxError as error:
...     print(error.kind, error.place.line)
syntax 1
"""

from __future__ import annotations

import re
from typing import Callable, NamedTuple


class Place(NamedTuple):
    """A place in a source text."""

    #: The file, or a name such as ``<text>``.
    file: str
    #: The line, from 1.
    line: int
    #: The column in characters, from 1.
    column: int
    #: The text that the message is about.
    text: str


class Error(Exception):
    """An error of the compiler.

    Attributes:
        kind: What kind of thing went wrong: ``input``, ``refused``, ...
        message: One sentence.
        place: Where it is in the source, if that is known.
        help: What can be done, if that is known.
        notes: Facts that explain the message.
        rendered: Everything as text, with the line of the source.
    """

    kind: str = "internal"

    def __init__(
        self,
        message: str,
        *,
        place: Place | None = None,
        help: str | None = None,
        notes: tuple[str, ...] = (),
        rendered: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.help = help
        self.notes = notes
        self.rendered = rendered if rendered is not None else f"error: {message}\n"

    def __str__(self) -> str:
        return self.rendered.rstrip("\n").removeprefix("error: ")

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.message, self.place, self.help, self.notes, self.rendered)
        return _again, (type(self), *fields)

    @property
    def witness(self) -> dict[str, int] | None:
        """The values that show it, where a proof failed at a point: variables and their values."""
        for note in self.notes:
            found = dict(re.findall(r"([A-Za-z_]\w*) = (-?\d+)", note))
            if found:
                return {name: int(value) for name, value in found.items()}
        return None


class SyntaxError(Error):
    """A text that does not parse."""

    kind = "syntax"


class MalformedError(Error):
    """A function or module that breaks a rule of the IR."""

    kind = "malformed"


class ModelError(Error):
    """A model file that is truncated, corrupt or inconsistent."""

    kind = "model"


class UnsupportedError(Error):
    """Something valid that is not covered: an operator, a type, a feature of a target."""

    kind = "unsupported"


class InputError(Error, ValueError):
    """Data or arguments that do not fit: a missing input, a wrong shape."""

    kind = "input"


class RefusedError(Error):
    """A transformation that refuses, with its reason."""

    kind = "refused"


class ExecutionError(Error, RuntimeError):
    """A program that did something illegal while it ran."""

    kind = "execution"


class ToolchainError(Error, RuntimeError):
    """LLVM, a C compiler or another tool is missing or failed."""

    kind = "toolchain"


class FileError(Error, OSError):
    """A file could not be read or written."""

    kind = "io"


class InternalError(Error, RuntimeError):
    """A bug of Tilewright; the message says which invariant broke."""

    kind = "internal"


_CLASSES: dict[str, type[Error]] = {
    c.kind: c
    for c in (
        SyntaxError,
        MalformedError,
        ModelError,
        UnsupportedError,
        InputError,
        RefusedError,
        ExecutionError,
        ToolchainError,
        FileError,
        InternalError,
    )
}


#: Options of the command line, and what says the same in Python.
_ADVICE: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r"--dim ([^\s=,]+)=(SIZE|\d+)(?:,? --dim [^\s=,]+=(?:SIZE|\d+))*",
        lambda m: (
            "dims={" + ", ".join(f'"{n}": {x}' for n, x in re.findall(r"--dim ([^\s=,]+)=(\w+)", m[0])) + "}"
        ),
    ),
    (r"--input ([^\s=,]+)=FILE\.npy", lambda m: f'values={{"{m[1]}": ARRAY}}'),
    (r"--dim\b", lambda m: "dims="),
    (r"--(unchecked|specialize|layout|threads)\b", lambda m: m[1] + ("=True" if m[1] == "unchecked" else "=")),
)


def _for_python(text: str) -> str:
    """A text that names options of the command line, as people of this package take it."""
    if "--" not in text:
        return text
    for pattern, replacement in _ADVICE:
        text = re.sub(pattern, replacement, text)
    return text


def _make(
    kind: str,
    message: str,
    place: tuple[str, int, int, str] | None,
    help: str | None,
    notes: list[str],
    rendered: str,
) -> Error:
    """The exception for a diagnostic; the extension calls this."""
    where = Place(*place) if place is not None else None
    kind_class = _CLASSES.get(kind, InternalError)
    help = None if help is None else _for_python(help)
    return kind_class(
        _for_python(message),
        place=where,
        help=help,
        notes=tuple(_for_python(note) for note in notes),
        rendered=_for_python(rendered),
    )


def _again(
    kind: type[Error],
    message: str,
    place: Place | None,
    help: str | None,
    notes: tuple[str, ...],
    rendered: str,
) -> Error:
    """The exception that was pickled."""
    return kind(message, place=place, help=help, notes=notes, rendered=rendered)
