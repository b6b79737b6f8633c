"""Modules: programs that were read, and can be looked at, changed and compiled.

>>> import numpy as np, tilewright
>>> module = tilewright.parse('''
... @T.prim_func
... def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
...     for i in range(4):
...         with T.block("B"):
...             vi = T.axis.spatial(4, i)
...             B[vi] = A[vi] * T.float32(2)
... ''')
>>> module.functions
('double',)
>>> exe = module.compile(threads=1)
>>> exe(np.arange(4, dtype=np.float32))
array([0., 2., 4., 6.], dtype=float32)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _native, display
from ._types import Dims, Model, Path, Port, Progress, Shapes, Values, port, sizes
from .errors import Error
from .executable import Executable
from .progress import Bar

__all__ = ["Difference", "Module", "Transformed", "load", "parse"]


class Difference:
    """The first difference of two modules.

    Attributes:
        path: Where it is.
        left: What stands there in the first module.
        right: What stands there in the second one.
        lines: The lines in the sources of both modules, where they are known.
    """

    def __init__(self, raw: tuple[str, str, str, str, int | None, int | None]) -> None:
        self._text, self.path, self.left, self.right = raw[:4]
        self.lines = (raw[4], raw[5])

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Difference: {self._text}>"


class Transformed:
    """What a pass made of a module.

    Attributes:
        module: The new module.
        remarks: What was left as it was, each with the reason.
        trace: The trace of a pass that schedules, as a script that runs again.
    """

    def __init__(self, module: Module, trace: str | None, remarks: Sequence[Error]) -> None:
        self.module = module
        self.trace = trace
        self.remarks = tuple(remarks)

    def __repr__(self) -> str:
        return f"<Transformed {self.module!r}, {len(self.remarks)} remarks>"


class Module:
    """A program: graph functions and tensor functions. It never changes.

    ``str(module)`` is TVMScript. Sizes that a model leaves open stay so until something settles them:
    what is compiled with open sizes runs at every size that fits. A model keeps its file, so that each
    call of :meth:`compile` may settle them anew.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: _native.Module) -> None:
        """Used by this package: see :func:`load` and :func:`parse`."""
        self._raw = raw

    def __str__(self) -> str:
        return self._raw.text()

    def __repr__(self) -> str:
        try:
            names = self.functions
        except Error as error:
            return f"<Module: {error.message}>"
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        return f"<Module of {len(names)} functions: {shown}>"

    def _repr_html_(self) -> str:
        return display.highlighted(str(self))

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions, in order."""
        return tuple(self._raw.functions())

    @property
    def entry(self) -> str:
        """The name of the function that is run.

        Raises:
            tilewright.InputError: if that is not clear.
        """
        return self._raw.entry()

    @property
    def inputs(self) -> tuple[Port, ...]:
        """What can be given: the inputs of a model, or the tensor parameters of a function.

        Sizes that are open are names.
        """
        return tuple(port(raw) for raw in self._raw.inputs())

    @property
    def fixed_inputs(self) -> tuple[str, ...]:
        """The inputs of a model that are constants now, because sizes depend on their values."""
        return tuple(self._raw.fixed())

    @property
    def open_sizes(self) -> tuple[str, ...]:
        """The names of sizes that are open."""
        return tuple(self._raw.open())

    def with_sizes(self, dims: Dims = None, *, shapes: Shapes = None, values: Values = None) -> Module:
        """The module with more sizes settled.

        Args:
            dims: Sizes by the name of a dimension, or by input and axis as ``INPUT.AXIS``. A pair of
                sizes is the range of one that stays open, both ends included: proofs use it, and no
                other size is run.
            shapes: Whole shapes by the name of an input.
            values: Values of inputs by name; an input of a model that sizes depend on becomes a
                constant.

        Raises:
            tilewright.InputError: for sizes that do not fit.
        """
        return Module(self._raw.with_sizes(*sizes(dims, shapes, values)))

    def compile(
        self,
        *,
        layout: str | None = "plan",
        io_layout: str = "logical",
        threads: int = 0,
        dims: Dims = None,
        shapes: Shapes = None,
        values: Values = None,
        specialize: Sequence[Mapping[str, int]] = (),
        target: str | None = None,
        cpu: str | None = None,
        opt_level: int = 3,
        fuse: bool = True,
        schedule: bool = True,
        fast_math: float | None = None,
        check: bool = False,
        unchecked: bool = False,
        cache: bool = True,
        link: Sequence[Path] = (),
        progress: Progress | bool | None = None,
    ) -> Executable:
        """Compiles the module to native code in this process.

        The program of a model's file with weights of a megabyte or more is kept beside the compiled code
        (unless ``cache`` says no): the next process that compiles the same file with the same sizes and
        options maps it, and reads no weights.

        Args:
            layout: In which layouts tensors lie: ``plan`` for those that are estimated or measured
                to be the fastest for the whole model, ``none`` for those of the model, or
                ``nhwc``, ``nchw4c``, ``nchw8c``, ``nchw16c`` for all convolutions.
            io_layout: ``physical`` lets inputs and outputs have other layouts than the model's own, too:
                :attr:`Executable.input_layouts` and ``output_layouts`` say which, and
                :meth:`Executable.store` and ``load`` convert; ``logical`` keeps them.
            threads: Threads that share the work of a run; 0 for one a core.
            dims: Sizes that are open, as :meth:`with_sizes` takes them.
            shapes: Whole shapes of inputs.
            values: Values of inputs that sizes depend on.
            specialize: Sizes, by name, for each of which a version of its own is compiled beside the
                one for all sizes; a call takes what fits its arrays.
            target: Where the model runs: ``None`` or ``native`` for this machine's processor; ``opencl``,
                ``opencl:1`` or ``opencl:NAME`` for a device, by its number or a part of its name.
            cpu: The processor, as LLVM calls it; ``None`` for this one.
            opt_level: How much LLVM optimises: 0, 1 or 3.
            fuse: Whether elementwise work joins what makes its operands.
            schedule: Whether loops are found; otherwise they stay as they are written.
            fast_math: The error that a convolution may have, as a part of its largest result: then
                convolutions of 3 x 3 pixels are computed by transforms (Winograd), with fewer products
                and more rounding, where that is estimated to be faster and the measured error is at
                most this. ``None`` for sums of products as they are written.
            check: Whether the rules of the IR are checked after every stage.
            unchecked: Whether checks that end a run at an access out of range are left out.
            cache: Whether compiled code and programs are kept on disk.
            link: Object files and shared libraries with C functions that the module calls.
            progress: A function that is told (what, done, total), and ends the compilation by what it
                raises; ``True`` or ``False`` for a bar or none; ``None`` for a bar where there is a terminal
                or a notebook.

        Raises:
            tilewright.InputError: if a size is left open that has to be known.
            tilewright.UnsupportedError: for what the target does not have.
            tilewright.ToolchainError: if LLVM is missing.
        """
        options: dict[str, Any] = {
            "layout": layout,
            "io_layout": io_layout,
            "threads": threads,
            "specialize": [dict(sizes) for sizes in specialize],
            "target": target,
            "cpu": cpu,
            "opt_level": opt_level,
            "fuse": fuse,
            "schedule": schedule,
            "fast_math": fast_math,
            "check": check,
            "unchecked": unchecked,
            "cache": cache,
            "link": [os.fspath(path) for path in link],
        }
        module = self
        if dims is not None or shapes is not None or values is not None:
            module = self.with_sizes(dims, shapes=shapes, values=values)
        with Bar(progress) as bar:
            raw = module._raw.compile(progress=bar.callback(), **options)
        return Executable(raw, module, options)

    def run_pass(self, name: str, **options: bool | int | str) -> Transformed:
        """Runs a pass by its name; :mod:`tilewright.passes` has each as a function.

        Raises:
            tilewright.InputError: for a pass or an option that there is not.
            tilewright.RefusedError: if the pass refuses.
        """
        given = [(key, str(int(v)) if isinstance(v, bool) else str(v)) for key, v in options.items()]
        new, trace, remarks = self._raw.run_pass(name, given)
        return Transformed(Module(new), trace, remarks)

    def after(self, stage: str, *, layout: str | None = "none", threads: int = 0) -> Module:
        """The module after a stage of compilation: one of ``tilewright.STAGES``."""
        return Module(self._raw.after(stage, layout=layout, threads=threads))

    def diff(self, other: Module, *, strict: bool = False) -> Difference | None:
        """The first structural difference to another module; ``None`` if they are equal.

        Names do not count, except with ``strict`` those of functions and blocks.
        """
        raw = self._raw.difference(other._raw, strict)
        return None if raw is None else Difference(raw)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._raw.state()


def _restored(text: str, constants: list[tuple[str, str, list[int], bytes]]) -> Module:
    """The module that was pickled."""
    return Module(_native.Module.from_state(text, constants))


def load(path: Model, *, dims: Dims = None, shapes: Shapes = None, values: Values = None) -> Module:
    """Loads an ONNX model (``.onnx``) or TVMScript (``.py``).

    The weights of a large model stay in the file, which is open from then on, until something needs them.
    The file may be replaced or deleted meanwhile; if it is written to, what needs them raises an error.

    Args:
        path: The file; one with another ending is taken for TVMScript if it is text. Or an ONNX model
            itself: its bytes, or an ``onnx.ModelProto``; weights in files beside it have no place then.
        dims: Sizes that the file leaves open, as :meth:`Module.with_sizes` takes them.
        shapes: Whole shapes of inputs.
        values: Values of inputs that sizes depend on (the target of a Reshape, ...).

    Raises:
        tilewright.FileError: if the file cannot be read.
        tilewright.SyntaxError: for TVMScript that does not parse.
        tilewright.ModelError: for a damaged model.
    """
    settled = sizes(dims, shapes, values)
    serialize = getattr(path, "SerializeToString", None)
    content = serialize() if serialize is not None else path
    if not isinstance(content, (bytes, bytearray, memoryview)):
        return Module(_native.load(os.fspath(content), *settled))
    # The reader takes files, and keeps this one open.
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        name = os.path.join(folder, "model.onnx")
        with open(name, "wb") as file:
            file.write(content)
        return Module(_native.load(name, *settled))


def parse(text: str, *, dims: Dims = None, name: str = "<text>") -> Module:
    """Reads TVMScript; ``name`` is what messages call it.

    Raises:
        tilewright.SyntaxError: with the place, where the text does not parse.
    """
    return Module(_native.parse(text, name, sizes(dims, None, None)[0]))
