#!/usr/bin/env python3
"""Batch inference on a local Ray cluster: images through a model, by one worker and by two.

    pip install . "ray[data]"
    python examples/ray/batch.py [--images N] [--repeat N] [--workers 1,2] [--address ADDRESS]

The model is compiled once and put into the object store; each worker takes it from there, holds it and
runs batch after batch. Without an address, a cluster of this machine alone is started. A worker takes
seconds to start, which counts: the work has to be larger than that.
"""

import argparse
import pathlib
import time

import numpy as np
import ray
import tilewright
from tilewright.ray import Predictor, put

MODEL = pathlib.Path(__file__).resolve().parents[1] / "digits/digits.onnx"
BATCH = 512


class Repeated(Predictor):
    """The model several times over: this one is small, and others take as long as many of it."""

    def __init__(self, model, repeat):
        super().__init__(model)
        self._repeat = repeat

    def __call__(self, batch):
        for _ in range(self._repeat):
            outputs = super().__call__(batch)
        return {"digit": outputs["logits"].argmax(axis=1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=400)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--address")
    arguments = parser.parse_args()
    ray.init(address=arguments.address, log_to_driver=False)
    exe = tilewright.load(MODEL, dims={"N": BATCH}).compile(threads=1)
    model = put(exe)
    images = np.random.default_rng(0).random((arguments.images, 1, 8, 8), dtype=np.float32)
    data = ray.data.from_numpy(np.array_split(images, arguments.blocks)).materialize()
    first = None

    def run(data, workers):
        start = time.perf_counter()
        done = data.map_batches(
            Repeated,
            fn_constructor_args=(model, arguments.repeat),
            batch_size=BATCH,
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=1,
        ).materialize()
        return done, time.perf_counter() - start

    # Compiles the model, which is kept on disk.
    run(data.limit(BATCH), 1)
    for workers in map(int, arguments.workers.split(",")):
        done, taken = run(data, workers)
        assert done.count() == arguments.images
        first = first or taken
        print(f"{workers} workers: {taken:.2f} s, {first / taken:.2f} times the first")


if __name__ == "__main__":
    main()
