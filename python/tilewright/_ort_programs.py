"""The executables of a session: which are compiled when, and which one runs.

A model whose sizes are open is compiled once for all of them. Where that is impossible, since sizes depend
on values or an operator needs to know them, it is compiled for each set of sizes that comes.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Callable, ClassVar

import numpy as np

from ._ort_feeds import Feeds
from ._types import Array
from .errors import InputError, UnsupportedError
from .executable import Executable
from .module import Module

__all__ = ["WHEN", "Programs"]

#: When a model is compiled: as the session is made, on another thread from then on, or at the first run,
#: for its sizes.
WHEN = ("session", "background", "first_run")

#: Executables that a session keeps for sizes of their own, the latest used.
KEPT = 16

#: How a first result is made that should come soon.
QUICK: dict[str, Any] = {"layout": None, "opt_level": 0}

#: What is told of compilations: what was compiled, and how long it took.
Say = Callable[[str], None]


class _Dropped(Exception):
    """Ends a compilation that nobody waits for."""


class _Task:
    """A compilation on another thread."""

    _all: ClassVar[weakref.WeakSet[_Task]] = weakref.WeakSet()

    def __init__(self, module: Module, how: dict[str, Any]) -> None:
        self._future: Future[Executable] = Future()
        self._is_dropped = threading.Event()
        work = (module, how, self._future, self._is_dropped)
        # The thread does not keep the session alive, and nothing waits for it but `_end`.
        self._thread = threading.Thread(target=_compile, args=work, name="tilewright-compile", daemon=True)
        self._thread.start()
        _Task._all.add(self)

    def done(self) -> bool:
        """Whether there is a result."""
        return self._future.done()

    def result(self) -> Executable:
        """The executable, when it is there; raises what went wrong."""
        return self._future.result()

    def drop(self) -> None:
        """Ends it at the next step of the compilation."""
        self._is_dropped.set()

    def wait(self) -> None:
        """Waits for its end."""
        self._thread.join()


def _compile(
    module: Module, how: dict[str, Any], future: Future[Executable], is_dropped: threading.Event
) -> None:
    def told(what: str, done: int, total: int) -> None:
        if is_dropped.is_set():
            raise _Dropped

    try:
        future.set_result(module.compile(progress=told, **how))
    except BaseException as error:
        future.set_exception(error)


@atexit.register
def _end() -> None:
    """Ends all that is compiled, so that no thread runs while the interpreter ends."""
    tasks = list(_Task._all)
    for task in tasks:
        task.drop()
    for task in tasks:
        task.wait()


if hasattr(os, "register_at_fork"):
    # A process that was forked has no other threads.
    os.register_at_fork(after_in_child=_Task._all.clear)


class Programs:
    """The executables of a model.

    Args:
        module: The model.
        how: How it is compiled, as :meth:`tilewright.Module.compile` takes it.
        feeds: Its inputs and outputs.
        when: One of :data:`WHEN`.
        quick: Whether the first runs are those of a quick compilation.
        say: Is told of compilations.
    """

    def __init__(
        self, module: Module, how: dict[str, Any], feeds: Feeds, *, when: str, quick: bool, say: Say
    ) -> None:
        self._module = module
        self._how = how
        self._say = say
        self._lock = threading.Lock()
        self._kept: dict[Any, Executable] = {}
        #: Inputs that sizes depend on, once that is known: their values are compiled in.
        self._fixed: set[str] = set()
        #: The executable for all sizes, if there is one.
        self._all_sizes: Executable | None = None
        #: The compilation of a better one.
        self._task: _Task | None = None
        self._is_open = any(
            not isinstance(size, int) for port in module.inputs for size in port.shape or ("?",)
        )
        #: Whether the first run compiles for all sizes beside its own.
        self._is_tried = when != "first_run"
        if feeds.needs_values:
            self._is_tried = True
        elif quick and when != "first_run":
            self._all_sizes = self._compiled_for_all({**how, **QUICK}, "quickly, for the first runs")
            self._task = _Task(module, how)
        elif when == "background":
            self._task = _Task(module, how)
        elif when == "session":
            self._all_sizes = self._compiled_for_all(how, "")

    def __del__(self) -> None:
        task = self.__dict__.get("_task")
        if task is not None:
            task.drop()

    def _compiled_for_all(self, how: dict[str, Any], remark: str) -> Executable | None:
        """The model for all sizes; ``None`` if sizes depend on values, or an operator needs them."""
        try:
            return self._compiled(self._module, how, remark)
        except (InputError, UnsupportedError) as error:
            self._without(error)
            return None

    def _without(self, error: InputError | UnsupportedError) -> None:
        """Goes on without an executable for all sizes, if a run can say more of sizes or values.

        Raises:
            tilewright.UnsupportedError: the error, if it cannot.
        """
        if not self._is_open and isinstance(error, UnsupportedError):
            raise error
        self._say(f"it is compiled for the sizes of each run, since not for all of them: {error}")

    def _compiled(self, module: Module, how: dict[str, Any], remark: str) -> Executable:
        start = time.perf_counter()
        made = module.compile(**how)
        seconds = time.perf_counter() - start
        sizes = ", ".join(f"{p.name} {list(p.shape or ())}" for p in made.inputs)
        self._say(f"compiled in {seconds:.2f} s for {sizes}{remark and ', '}{remark}")
        return made

    def for_all_sizes(self) -> Executable | None:
        """The executable for all sizes, as good as it is by now.

        Raises:
            tilewright.Error: those of the compilation, if that was on another thread.
        """
        task = self._task
        if task is None or (self._all_sizes is not None and not task.done()):
            return self._all_sizes
        with self._lock:
            if self._task is task:
                try:
                    self._all_sizes = task.result()
                    self._say("what was compiled on another thread runs from now on")
                except (InputError, UnsupportedError) as error:
                    if self._all_sizes is None:
                        self._without(error)
                finally:
                    if task.done():
                        self._task = None
            return self._all_sizes

    def any(self) -> Executable:
        """An executable that says which outputs there are; compiles it where there is none yet."""
        made = self.for_all_sizes()
        with self._lock:
            if made is None and self._kept:
                made = next(reversed(self._kept.values()))
            if made is None:
                made = self._all_sizes = self._compiled(self._module, self._how, "")
        return made

    def of(self, arrays: Mapping[str, Array]) -> Executable:
        """The executable for what is given.

        Raises:
            tilewright.Error: those of compiling it.
        """
        shapes = tuple((name, tuple(np.shape(x)), str(getattr(x, "dtype", ""))) for name, x in arrays.items())
        # A size of zero is no open one.
        is_empty = any(0 in shape for _, shape, _ in shapes)
        made = None if is_empty and self._is_open else self.for_all_sizes()
        if made is not None:
            return made
        with self._lock:
            found = self._kept.pop((shapes, self._values(arrays)), None)
            if found is None and self._kept and not self._is_tried and not is_empty:
                self._is_tried = True
                self._all_sizes = self._compiled_for_all(self._how, "")
                if self._all_sizes is not None:
                    return self._all_sizes
            if found is None:
                # Values on which sizes may depend: those that are read become constants.
                given = {name: tuple(np.shape(x)) for name, x in arrays.items()}
                module = self._module.with_sizes(shapes=given, values={**arrays})
                found = self._compiled(module, self._how, "")
                self._fixed.update(module.fixed_inputs)
            self._kept[shapes, self._values(arrays)] = found
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return found

    def _values(self, arrays: Mapping[str, Array]) -> Any:
        """The values of inputs that are compiled in."""
        return tuple((n, np.asarray(arrays[n]).tobytes()) for n in sorted(self._fixed) if n in arrays)
