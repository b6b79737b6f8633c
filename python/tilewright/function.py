"""Functions of arrays: modules that are compiled when they are called, for the sizes of the arrays."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ._types import Array
from .executable import Executable
from .module import Module

__all__ = ["Function"]

#: Executables that a function keeps, the latest used.
KEPT = 16


class Function:
    """A module that is called on arrays.

    It is compiled for the shapes that it is called with, where it leaves sizes open, and keeps what
    it compiled last.

    Attributes:
        module: What is compiled.
        options: How, as :meth:`tilewright.Module.compile` takes it.
    """

    def __init__(self, module: Module, **options: Any) -> None:
        self.module = module
        self.options = options
        self._kept: dict[tuple[tuple[int, ...], ...], Executable] = {}
        self._lock = threading.Lock()
        self._ports = module.inputs

    def __repr__(self) -> str:
        return f"<Function of {self.module!r}>"

    def _repr_html_(self) -> str:
        return self.module._repr_html_()

    def __str__(self) -> str:
        return str(self.module)

    def executable(self, *args: Array, **kwargs: Array) -> Executable:
        """The executable for arrays of these shapes."""
        named = [p.name for p in self._ports]
        given = dict(zip(named, args))
        given.update(kwargs)
        shapes = {name: tuple(np.shape(x)) for name, x in given.items() if name in named}
        key = tuple(shapes[name] for name in named if name in shapes)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                open_sizes = bool(self.module.open_sizes)
                found = self.module.compile(shapes=shapes if open_sizes else None, **self.options)
            self._kept[key] = found
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return found

    def __call__(self, *args: Array, **kwargs: Array) -> Any:
        """Runs on arrays.

        Raises:
            tilewright.Error: those of compiling and running.
        """
        return self.executable(*args, **kwargs)(*args, **kwargs)
