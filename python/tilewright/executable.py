"""Executables: compiled modules that take and give arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _native, display
from ._native import DeviceTensor
from ._types import Array, Path, Port, port
from .errors import Error, ExecutionError, FileError, InputError

if TYPE_CHECKING:
    from .module import Module

__all__ = ["DeviceTensor", "Executable", "Profile", "Storage", "open"]

#: Sets of sizes that an executable keeps a version of its own for.
KEPT = 8


class Profile:
    """How long each step of a run takes.

    Attributes:
        steps: The function of each step, and the seconds of its shortest run.
    """

    def __init__(self, steps: list[tuple[str, float]]) -> None:
        self.steps = tuple(steps)

    @property
    def total(self) -> float:
        """Seconds of all steps."""
        return sum(seconds for _, seconds in self.steps)

    def _rows(self) -> list[tuple[str, str, str]]:
        total = self.total or 1.0
        order = sorted(self.steps, key=lambda step: -step[1])
        return [(name, f"{s * 1e6:.1f} µs", f"{s / total:.1%}") for name, s in order]

    def __str__(self) -> str:
        rows = "\n".join(f"{time:>12}  {share:>6}  {name}" for name, time, share in self._rows())
        return f"{self.total * 1e6:.1f} µs in {len(self.steps)} steps\n{rows}"

    def __repr__(self) -> str:
        return f"<Profile: {self.total * 1e6:.1f} µs in {len(self.steps)} steps>"

    def _repr_html_(self) -> str:
        return display.table(("function", "time", "share"), self._rows())


class Storage(NamedTuple):
    """How an input or output is stored that is not in the model's own layout.

    Attributes:
        index_map: From logical to stored indices.
        shape: The logical extents.
        physical: The stored extents.
        pad: What the cells hold that no element has: in an input they must hold it. ``None`` where
            there are none, or where an output holds anything there.
    """

    index_map: str
    shape: tuple[int, ...]
    physical: tuple[int, ...]
    pad: float | None


def _storage(raw: tuple[str, list[int], list[int], float | None] | None) -> Storage | None:
    if raw is None:
        return None
    index_map, shape, physical, pad = raw
    return Storage(index_map, tuple(shape), tuple(physical), pad)


class Executable:
    """A compiled module: call it on arrays.

    Inputs go by position or by name. They may be NumPy arrays or anything with DLPack in memory that
    the CPU can read; what is C-contiguous and aligned to its elements is read in place. The result is
    one NumPy array, or a tuple where there are several outputs; each lies in memory of its own, which
    anything that takes DLPack (``torch.from_dlpack``) can share.

    The lock of the interpreter is released while it runs, and several threads may call it at once.
    It can be pickled: by the module and the options, and is compiled anew where it is unpickled (what
    the cache of compiled code has is not compiled again). It is a context manager that closes it.
    """

    __slots__ = ("_module", "_options", "_raw", "_run", "_saved", "_versions")

    def __init__(
        self,
        raw: _native.Executable,
        module: Module | None,
        options: dict[str, Any],
        saved: np.ndarray[Any, Any] | None = None,
    ) -> None:
        """Used by this package: see :meth:`tilewright.Module.compile`."""
        self._raw = raw
        self._run = raw.run
        self._module = module
        self._options = options
        self._saved = saved
        self._versions: dict[Any, Executable | None] = {}

    def __call__(self, *args: Array, out: Array | Sequence[Array] | None = None, **kwargs: Array) -> Any:
        """Runs on arrays.

        Args:
            *args: Inputs by position.
            out: Arrays that the outputs are written into, which are then the result: one for each output,
                of its type and shape. (An input of this name goes by position.) The array of an output that is
                an input with some cells changed, as a cache to which rows are appended, may be that of the
                input: then nothing of it is copied.
            **kwargs: Inputs by name.

        Raises:
            tilewright.InputError: if the number, a type or a shape does not fit.
            tilewright.ExecutionError: if the program does something illegal.
        """
        if out is None:
            return self._run_sized(args, kwargs)
        names = self.output_names
        buffers = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(buffers) != len(names):
            raise InputError(f"{len(buffers)} arrays were given for {len(names)} outputs: {', '.join(names)}")
        memories = [_writable(buffer, name) for buffer, name in zip(buffers, names)]
        made = list(zip(memories, self._run_into(args, kwargs, memories), names))
        for memory, result, name in made:
            if result is None:
                continue
            if memory.shape != result.shape or memory.dtype != result.dtype:
                given, expected = (f"{x.dtype}{list(x.shape)}" for x in (memory, result))
                raise InputError(f"the array for output `{name}` is {given}, and the output is {expected}")
        for memory, result, _ in made:
            if result is not None:
                np.copyto(memory, result)
        return out

    def on_device(self, *args: Array | DeviceTensor, **kwargs: Array | DeviceTensor) -> Any:
        """Runs on a device (``target="opencl"``, ``target="cuda"``), and leaves the outputs there.

        What is in memory of the device is read where it lies: results of other executables on it, and with CUDA
        anything with DLPack (PyTorch, CuPy), whose work is waited for. Arrays of the processor are copied.

        Args:
            *args: Inputs by position.
            **kwargs: Inputs by name.

        Returns:
            One :class:`DeviceTensor`, or a tuple where there are several outputs. It has DLPack
            (``torch.from_dlpack``); ``numpy()`` copies it to the processor.

        Raises:
            tilewright.InputError: if the number, a type or a shape does not fit, or it runs on the processor.
            tilewright.ExecutionError: if the program does something illegal.
        """
        outputs = self._raw.run_on_device(*args, **kwargs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _run_into(
        self, args: Sequence[Array], kwargs: Mapping[str, Array], outs: Sequence[Array | None]
    ) -> list[Any | None]:
        """Runs it, and writes outputs into arrays where it can: gives ``None`` for these, else the value."""
        try:
            return self._raw.run_into(tuple(args), dict(kwargs), outs)
        except (InputError, ExecutionError):
            version = self._for_sizes({**dict(zip(self.input_names, args)), **kwargs})
            if version is None:
                raise
        return version._run_into(args, kwargs, outs)

    def _run_sized(self, args: Sequence[Array], kwargs: Mapping[str, Array]) -> Any:
        """Runs it; sizes at which the open program cannot run have a version of their own."""
        try:
            return self._run(*args, **kwargs)
        except (InputError, ExecutionError):
            # What does not hold for all sizes may hold for these, as where a size of one is repeated.
            version = self._for_sizes({**dict(zip(self.input_names, args)), **kwargs})
            if version is None:
                raise
        return version(*args, **kwargs)

    def _for_sizes(self, arrays: Mapping[str, Array]) -> Executable | None:
        """The executable for the sizes of these arrays alone, where the model takes them.

        The open program runs at no size of zero, at none that decides how many dimensions a value has, and
        where it takes sizes for equal that are computed, only if they are.
        """
        if self._module is None or not self._module.open_sizes or not self._may_fit(arrays):
            return None
        shapes = {name: tuple(np.shape(x)) for name, x in arrays.items()}
        key = tuple(sorted(shapes.items()))
        if key not in self._versions:
            options = {name: value for name, value in self._options.items() if name != "specialize"}
            try:
                version = self._module.with_sizes(shapes=shapes).compile(**options)
            except Error:
                # What the open program said is what does not fit.
                return None
            if len(self._versions) == KEPT:
                self._versions.pop(next(iter(self._versions)))
            # A function whose loops have no iterations writes none of its parameters: nothing is an output.
            self._versions[key] = version if version.output_names == self.output_names else None
        return self._versions[key]

    def _may_fit(self, arrays: Mapping[str, Array]) -> bool:
        """Whether arrays are those of the inputs, but for sizes."""
        ports = {port.name: port for port in self.inputs}
        if ports.keys() != arrays.keys():
            return False

        def fits(name: str, x: Array) -> bool:
            _, dtype, shape = ports[name]
            is_of_type = str(getattr(x, "dtype", None)).rpartition(".")[2] == dtype
            return is_of_type and shape is not None and np.ndim(x) == len(shape)

        return all(fits(name, x) for name, x in arrays.items())

    def __repr__(self) -> str:
        if self.closed:
            return "<Executable, closed>"

        def shown(ports: tuple[Port, ...]) -> str:
            return ", ".join(f"{p.name}: {p.dtype}{list(p.shape or ())}" for p in ports)

        return f"<Executable ({shown(self.inputs)}) -> ({shown(self.outputs)})>"

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Name, element type and shape of each input."""
        return tuple(port(raw) for raw in self._raw.inputs())

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Name, element type and shape of each output."""
        return tuple(port(raw) for raw in self._raw.outputs())

    @property
    def input_layouts(self) -> tuple[Storage | None, ...]:
        """How each input is stored; ``None`` for those in the model's own layout.

        Only with ``io_layout="physical"`` is there another; then a call takes stored arrays.
        """
        return tuple(_storage(raw) for raw in self._raw.storage()[0])

    @property
    def output_layouts(self) -> tuple[Storage | None, ...]:
        """How each output is stored; ``None`` for those in the model's own layout."""
        return tuple(_storage(raw) for raw in self._raw.storage()[1])

    def store(self, name: str, value: Array) -> Any:
        """An array of the model's shape as the input of this name takes it.

        Raises:
            tilewright.InputError: if there is no such input, or the shape does not fit.
        """
        return self._raw.store(name, value)

    def load(self, name: str, value: Array) -> Any:
        """The array of the model's shape that the output of this name holds.

        Raises:
            tilewright.InputError: if there is no such output, or the shape does not fit.
        """
        return self._raw.load(name, value)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple(p.name for p in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in order."""
        return tuple(p.name for p in self.outputs)

    @property
    def module(self) -> Module | None:
        """The module that was compiled; ``None`` for what was opened from a file."""
        return self._module

    @property
    def threads(self) -> int:
        """Threads that share the work of a run."""
        return self._raw.threads()

    @property
    def memory(self) -> tuple[int | None, int]:
        """Bytes of intermediate results of one run, if no size is open, and of constants."""
        return self._raw.memory()

    def give(self, name: str, size: int) -> None:
        """Says how large a size is that the shapes of the inputs do not say, for later calls.

        A tensor function may take ``n`` as a number, of which its arrays only have ``(n + 7) // 8``.

        Raises:
            tilewright.InputError: if there is no such size, or it cannot be that large.
        """
        self._raw.give(name, size)

    def profile(self, *args: Array, repeat: int = 10, **kwargs: Array) -> Profile:
        """Runs several times and says how long each step takes at least.

        Raises:
            tilewright.InputError: as a call does.
        """
        return Profile(self._raw.profile(repeat, args, kwargs))

    def save(self, path: Path) -> None:
        """Writes it to a file, which :func:`tilewright.open` opens without LLVM.

        The code is for the processor that it was compiled for; a C compiler links it.

        Raises:
            tilewright.FileError: if the file cannot be written.
            tilewright.ToolchainError: if there is no C compiler.
        """
        if self._module is not None:
            self._module._raw.save(os.fspath(path), **self._options)
        elif self._saved is not None:
            self._saved.tofile(os.fspath(path))

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._raw.closed()

    def close(self) -> None:
        """Gives its memory back; runs that go on end first. A call raises afterwards."""
        self._raw.close()

    def __enter__(self) -> Executable:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._module is None:
            return _opened, (self._saved, self._options.get("threads"))
        return _compiled, (self._module, self._options)


def _writable(buffer: Array, name: str) -> np.ndarray[Any, Any]:
    """The memory of an array that an output is written into."""
    if isinstance(buffer, np.ndarray):
        memory = buffer
    elif hasattr(buffer, "__dlpack__"):
        memory = np.from_dlpack(buffer)
    else:
        raise InputError(f"what is given for output `{name}` is no array: {type(buffer).__name__}")
    if not memory.flags.writeable:
        raise InputError(f"the array for output `{name}` cannot be written")
    return memory


def _compiled(module: Module, options: dict[str, Any]) -> Executable:
    """The executable that was pickled."""
    return Executable(module._raw.compile(**options), module, options)


def _opened(content: np.ndarray[Any, Any], threads: int | None) -> Executable:
    """The executable of the content of a file."""
    raw = _native.open_saved(content, threads)
    return Executable(raw, None, {"threads": threads}, content)


def open(path: Path, *, threads: int | None = None) -> Executable:
    """Opens a compiled model that :meth:`Executable.save` wrote. LLVM is not needed.

    The file holds code, which is run: open only files that you trust, as you would import a module.

    Args:
        path: The file.
        threads: Threads of a run, instead of those that it was compiled for; 0 for one a core.

    Raises:
        tilewright.FileError: if the file cannot be read.
        tilewright.ModelError: if it is no such file, or is damaged.
        tilewright.UnsupportedError: if this machine lacks features that the code uses.
    """
    try:
        content = np.fromfile(os.fspath(path), np.uint8)
    except OSError as error:
        raise FileError(f"{os.fspath(path)}: {error.strerror or error}") from error
    return _opened(content, threads)
