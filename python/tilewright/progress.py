"""Progress: a bar on a terminal or in a notebook, or a function that is told.

Nothing is drawn for work that is done within a second.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from ._types import Progress

#: Seconds before a bar appears, and between two drawings of it.
DELAY = 1.0
INTERVAL = 0.1
WIDTH = 30


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class Bar:
    """A bar on standard error, where that is a terminal or the page of a notebook.

    Args:
        wanted: ``None`` draws where there is a terminal or a notebook, ``True`` everywhere and
            ``False`` nowhere; a function is called instead of drawing.
    """

    def __init__(self, wanted: Progress | bool | None = None) -> None:
        self._told: Progress | None = wanted if callable(wanted) else None
        shown = sys.stderr is not None and (sys.stderr.isatty() or _in_notebook())
        self._draws = self._told is None and (wanted is True or (wanted is None and shown))
        self._start = time.monotonic()
        self._last = 0.0
        self._drawn = 0
        self._lock = threading.Lock()

    def callback(self) -> Progress | None:
        """What is to be told; ``None`` where nobody listens."""
        return self._told or (self if self._draws else None)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Draws how far something is."""
        now = time.monotonic()
        with self._lock:
            if now - self._start < DELAY or now - self._last < INTERVAL:
                return
            self._last = now
            full = WIDTH * done // max(total, 1)
            line = f"{what[:40]:<12} [{'#' * full}{'.' * (WIDTH - full)}] {done}/{total}"
            sys.stderr.write("\r" + line.ljust(self._drawn))
            sys.stderr.flush()
            self._drawn = len(line)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Takes the bar away."""
        with self._lock:
            if self._drawn:
                sys.stderr.write("\r" + " " * self._drawn + "\r")
                sys.stderr.flush()
                self._drawn = 0
