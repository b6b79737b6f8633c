"""Tuning: what a plan of layouts asks the price of is measured, here or on a cluster of Ray.

Times are kept in a file that every later compilation for the same machine and number of threads reads.
There is one writer, whoever measures; tuning can be stopped at any time and goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from . import _native
from ._types import Path, Progress
from .errors import InputError
from .module import Module, load
from .progress import Bar

__all__ = ["Tuned", "export_measurements", "import_measurements", "measurer", "tune"]

#: The part of the budget that is for functions; the rest is for whole models.
CANDIDATES = 0.7


class Tuned(NamedTuple):
    """What tuning did.

    Attributes:
        file: Where the times are.
        candidates: How many functions the plan can choose from.
        measured: How many of them are measured, now or before.
        new: How many were measured now.
        failures: What failed now, and why.
        models: Nanoseconds of a run of the whole model: for the plan by its costs, the next best
            plans (``plan:2``, ...) and each fixed layout.
    """

    file: str
    candidates: int
    measured: int
    new: int
    failures: tuple[tuple[str, str], ...]
    models: dict[str, float]


@contextmanager
def measurer(module: Module | None = None, *, limit: float = 30.0) -> Iterator[_native.Measurer]:
    """A process that measures: ``ask(request)`` gives nanoseconds, or why there are none.

    A candidate that crashes it, or takes longer than ``limit`` seconds, costs only itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tilewright._measure"]
        if module is not None:
            path = os.path.join(folder, "module.pickle")
            with open(path, "wb") as file:
                pickle.dump(module, file)
            command.append(path)
        yield _native.Measurer(command, limit)


def _file(file: Path | None) -> str:
    found = os.fspath(file) if file is not None else _native.tuning_file()
    if found is None:
        raise InputError(
            "there is no file to keep measurements in",
            help="name one, here or in the environment variable TILEWRIGHT_TUNING",
        )
    return str(found)


def tune(
    module: Module,
    *,
    budget: float = 60.0,
    threads: int = 0,
    limit: float = 30.0,
    whole: bool = True,
    file: Path | None = None,
    ray: str | bool | None = None,
    progress: Progress | bool | None = None,
) -> Tuned:
    """Measures the functions that a model can be made of, and the layouts of the whole model.

    Args:
        module: The model, with its sizes.
        budget: For how many seconds to measure.
        threads: Threads of a run; 0 for one a core.
        limit: How many seconds one candidate may take, with its compilation.
        whole: Whether whole models are measured, too.
        file: The file of measurements, instead of the one that compilations read.
        ray: The address of a Ray cluster whose nodes measure; ``True`` for the one that is connected.
            All of them have to be machines like this one.
        progress: Who is told, as in :meth:`tilewright.Module.compile`.

    Raises:
        tilewright.InputError: where there is nothing to choose.
    """
    path = _file(file)
    session = _native.Tuning(module._raw, threads, path)
    with Bar(progress) as bar:
        told = bar.callback() or (lambda what, done, total: None)
        if ray is not None and ray is not False:
            from .ray import measure_all

            address = None if ray is True else str(ray)
            start = time.monotonic()
            share = budget * (CANDIDATES if whole else 1.0)
            while left := session.candidates():
                rest = share - (time.monotonic() - start)
                if rest <= 0:
                    break
                measure_all(module, left, session.keep, address, rest, limit, told)
            if whole:
                rest = budget - (time.monotonic() - start)
                models = session.models()
                measure_all(module, models, session.keep_model, address, rest, limit, told)
        else:
            _measure_here(session, module, budget, limit, whole, told)
    candidates, measured, new, failures, times = session.report()
    return Tuned(path, candidates, measured, new, tuple(failures), dict(times))


def _measure_here(
    session: _native.Tuning,
    module: Module,
    budget: float,
    limit: float,
    whole: bool,
    told: Progress,
) -> None:
    start = time.monotonic()
    with measurer(module, limit=limit) as worker:
        share = budget * (CANDIDATES if whole else 1.0)
        while time.monotonic() - start <= share and (left := session.candidates()):
            for done, (candidate, what, request) in enumerate(left):
                if time.monotonic() - start > share:
                    break
                if session.is_kept(candidate):
                    continue
                told(what, done, len(left))
                session.keep(candidate, *worker.ask(request))
        models = session.models() if whole else []
        for done, (model, what, request) in enumerate(models):
            if time.monotonic() - start > budget:
                break
            told(what, done, len(models))
            session.keep_model(model, *worker.ask(request))


def export_measurements(file: Path | None = None) -> str:
    """All measurements of a file, as lines of JSON."""
    return _native.export_measurements(_file(file))


def import_measurements(text: str, file: Path | None = None) -> tuple[int, int]:
    """Merges measurements into a file: how many were new or shorter, of how many."""
    return _native.import_measurements(_file(file), text)


def main(arguments: list[str] | None = None) -> int:
    """The command ``tilewright-tune``: ``tilewright tune`` on a Ray cluster."""
    parser = argparse.ArgumentParser(
        prog="tilewright-tune",
        description="Measure a model's functions, on the nodes of a Ray cluster.",
    )
    parser.add_argument("model", help="an ONNX model, or TVMScript with a graph function")
    parser.add_argument("--ray", metavar="ADDRESS", help="the cluster; this machine alone without it")
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--limit", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument("--threads", type=int, default=0, metavar="N")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    parser.add_argument("--file", metavar="FILE")
    given: Any = parser.parse_args(arguments)
    dims = {}
    for pair in given.dim:
        name, _, size = pair.rpartition("=")
        if not name or not size.isdigit():
            parser.error(f"--dim {pair}: expected NAME=SIZE")
        dims[name] = int(size)
    done = tune(
        load(given.model, dims=dims),
        budget=given.budget,
        limit=given.limit,
        threads=given.threads,
        file=given.file,
        ray=given.ray,
    )
    print(f"{done.measured} of {done.candidates} functions are measured, {done.new} of them now")
    for what, why in done.failures:
        print(f"  failed: {what}: {why}")
    for name, nanoseconds in sorted(done.models.items(), key=lambda item: item[1]):
        print(f"  layout {name}: {nanoseconds / 1e3:.1f} µs a run")
    print(f"kept in {done.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
