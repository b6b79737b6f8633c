"""What sessions say: messages of ONNX Runtime's severities, on standard error or to a function."""

from __future__ import annotations

import sys
from typing import Any, Callable

__all__ = ["INFO", "WARNING", "say", "set_callback", "set_severity", "set_verbosity"]

INFO = 1
WARNING = 2
#: The letters of the severities, which are numbers from 0 on.
_LETTERS = "VIWEF"

#: Severity, category, name of who says it, place, message.
Callback = Callable[[int, str, str, str, str], Any]

_severity = WARNING
_callback: Callback | None = None


def _checked(severity: int) -> int:
    if not isinstance(severity, int) or not 0 <= severity < len(_LETTERS):
        raise RuntimeError(f"Invalid logging severity level specified. Valid values are 0 to 4, not {severity}")
    return severity


def set_severity(severity: int) -> None:
    """Sets the least severity of what is said: 0 (verbose) to 4 (fatal); 2, warnings, at first.

    Raises:
        RuntimeError: for another number.
    """
    global _severity
    _severity = _checked(severity)


def set_verbosity(verbosity: int) -> None:
    """Takes how much is said of what is verbose: there is one degree of that."""


def set_callback(callback: Callback | None, severity: int = WARNING) -> None:
    """Sets what is told instead of standard error, and the least severity; ``None`` for standard error.

    Raises:
        RuntimeError: for what is no function, and another severity.
    """
    global _callback
    if callback is not None and not callable(callback):
        raise RuntimeError(f"a callback for messages is a function, not {type(callback).__name__}")
    least = _checked(severity)
    _callback = callback
    if callback is not None:
        set_severity(least)


def say(severity: int, place: str, message: str, *, least: int = -1, name: str = "") -> None:
    """Says something.

    Args:
        severity: How grave it is.
        place: Which function says it.
        message: What it says.
        least: The severity from which on the session says anything; below 0 for that of all sessions.
        name: What the session is called.
    """
    if severity < (least if least >= 0 else _severity):
        return
    if _callback is None:
        if sys.stderr is not None:
            print(f"[{_LETTERS[severity]}:tilewright:{name}, {place}] {message}", file=sys.stderr)
        return
    try:
        _callback(severity, "tilewright", name, place, message)
    except Exception as error:
        # Whoever listens does not end what is listened to.
        print(f"tilewright: the callback for messages raised {error!r}", file=sys.stderr)
