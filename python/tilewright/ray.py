"""Many machines through Ray: batch inference, and tuning.

Batch inference with Ray Data: the model is shipped once, through the object store, and each actor
holds one executable::

    import numpy as np, ray, tilewright
    from tilewright.ray import Predictor

    exe = tilewright.load("model.onnx", dims={"N": 64}).compile(threads=1)
    data = ray.data.from_numpy(np.load("images.npy"))
    done = data.map_batches(Predictor, fn_constructor_args=(tilewright.ray.put(exe),),
                            batch_size=64, compute=ray.data.ActorPoolStrategy(size=2))

Columns that are no input stay beside the outputs, so that a row is known by what it came with.
A batch that a killed worker held runs again on another one; Ray counts each of them once. It needs the
package ``ray``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable

import numpy as np
import ray

from ._types import Progress
from .errors import InputError
from .executable import Executable
from .module import Module

__all__ = ["Predictor", "measure_all", "put"]


def put(executable: Executable) -> Any:
    """Puts an executable into the object store, from where each actor takes it once."""
    return ray.put(executable)


class Predictor:
    """An actor of Ray Data that runs a model on batches.

    Columns that the model does not take are given back beside its outputs.

    The last batch may be smaller than the model's: it is filled up, and what was filled is left out of
    the outputs.

    Args:
        executable: The model, or where :func:`put` has put it.
        columns: For each input of the model the column of the data; the names of the inputs where
            nothing is said, and ``data`` for a model with one input.
    """

    def __init__(self, executable: Any, columns: dict[str, str] | None = None) -> None:
        found = ray.get(executable) if isinstance(executable, ray.ObjectRef) else executable
        self._executable: Executable = found
        self._names = found.input_names
        self._columns = columns or {}

    def _column(self, name: str, batch: dict[str, Any]) -> str:
        """The column of an input."""
        column = self._columns.get(name, name)
        if column not in batch and len(self._names) == 1 and "data" in batch:
            column = "data"
        if column not in batch:
            raise InputError(f"there is no column `{column}` for input `{name}`: there are {', '.join(batch)}")
        return column

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The outputs for a batch, by name, and the columns that are no inputs.

        Raises:
            tilewright.InputError: if a column is missing, or one that is no input has the name of an output.
        """
        columns = {name: self._column(name, batch) for name in self._names}
        rest = {name: column for name, column in batch.items() if name not in columns.values()}
        twice = [name for name in self._executable.output_names if name in rest]
        if twice:
            raise InputError(f"`{twice[0]}` is a column that is no input, and an output")
        inputs = {}
        count = 0
        for port in self._executable.inputs:
            array = np.asarray(batch[columns[port.name]])
            count = len(array)
            size = port.shape[0] if port.shape else count
            if isinstance(size, int) and size > count:
                # Whole rows again, so that there is nothing that the model has not seen.
                array = np.resize(array, (size, *array.shape[1:]))
            inputs[port.name] = np.ascontiguousarray(array.astype(port.dtype, copy=False))
        outputs = self._executable(**inputs)
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        return {**rest, **{n: x[:count] for n, x in zip(self._executable.output_names, listed)}}


class _Measurer:
    """An actor that measures, one candidate at a time, with a whole node's cores for itself."""

    def __init__(self, module: Module, limit: float) -> None:
        from .tuning import measurer

        self._context = measurer(module, limit=limit)
        self._worker = self._context.__enter__()

    def ask(self, request: str) -> tuple[float | None, str | None]:
        return self._worker.ask(request)


def _nodes() -> list[str]:
    """The nodes that are alive and have a CPU."""
    return [
        node["NodeID"] for node in ray.nodes() if node["Alive"] and node.get("Resources", {}).get("CPU", 0) > 0
    ]


def measure_all(
    module: Module,
    requests: Sequence[tuple[int, str, str]],
    keep: Callable[[int, float | None, str | None], None],
    address: str | None,
    budget: float,
    limit: float,
    told: Progress,
) -> None:
    """Measures requests on all nodes of a cluster, one at a time on each, and keeps every answer here.

    A node that is lost loses what it was measuring, which another one measures again; nodes that join
    take part. Requests that three nodes were lost with count as failures: they may be the reason.

    Args:
        module: The model that is tuned.
        requests: Number, what it is, and the request.
        keep: Is given the number and the answer, always in this process: the one writer.
        address: The cluster; ``None`` for the one that is connected.
        budget: For how many seconds to begin measurements.
        limit: How many seconds one may take.
        told: Is told how far it is.
    """
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    shipped = ray.put(module)
    actor = ray.remote(max_restarts=0, num_cpus=1)(_Measurer)
    start = time.monotonic()
    waiting = list(reversed(requests))
    lost: dict[int, int] = {}
    workers: dict[str, Any] = {}
    running: dict[Any, tuple[str, tuple[int, str, str]]] = {}
    done = 0
    try:
        while running or waiting:
            if time.monotonic() - start > budget:
                waiting.clear()
                if not running:
                    break
            busy = {node for node, _ in running.values()}
            for node in _nodes() if waiting else []:
                if node in busy or not waiting:
                    continue
                if node not in workers:
                    where = NodeAffinitySchedulingStrategy(node, soft=False)
                    workers[node] = actor.options(scheduling_strategy=where).remote(shipped, limit)
                request = waiting.pop()
                told(request[1], done, len(requests))
                running[workers[node].ask.remote(request[2])] = (node, request)
            if not running:
                # Every node is gone; others may join.
                time.sleep(0.2)
                continue
            ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            for reference in ready:
                node, request = running.pop(reference)
                try:
                    nanoseconds, failure = ray.get(reference)
                except ray.exceptions.RayError as error:
                    workers.pop(node, None)
                    lost[request[0]] = lost.get(request[0], 0) + 1
                    if lost[request[0]] < 3:
                        waiting.append(request)
                        continue
                    nanoseconds, failure = None, f"the nodes that measured it were lost: {error}"
                keep(request[0], nanoseconds, failure)
                done += 1
    finally:
        for worker in workers.values():
            ray.kill(worker)
