#!/usr/bin/env python3
"""Batch inference on a local Ray cluster: images through a model, by one worker and by two.

    pip install . "ray[data]"
    python examples/ray/batch.py [--images N] [--workers 1,2] [--address ADDRESS]

The model is compiled once and put into the object store; each worker takes it from there, holds it and
runs batch after batch. Without an address, a cluster of this machine alone is started.
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
    """The model several times over, so that there is something to share out."""

    def __call__(self, batch):
        for _ in range(20):
            outputs = super().__call__(batch)
        return {"digit": outputs["logits"].argmax(axis=1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--address")
    arguments = parser.parse_args()
    ray.init(address=arguments.address, log_to_driver=False)
    exe = tilewright.load(MODEL, dims={"N": BATCH}).compile(threads=1)
    model = put(exe)
    images = np.random.default_rng(0).random((arguments.images, 1, 8, 8), dtype=np.float32)
    data = ray.data.from_numpy(np.array_split(images, 64)).materialize()
    first = None
    for workers in map(int, arguments.workers.split(",")):
        # Twice: the first run starts the workers and compiles.
        for _ in range(2):
            start = time.perf_counter()
            done = data.map_batches(
                Repeated, fn_constructor_args=(model,), batch_size=BATCH, concurrency=workers, num_cpus=1
            ).materialize()
            taken = time.perf_counter() - start
        assert done.count() == arguments.images
        first = first or taken
        print(f"{workers} workers: {taken:.2f} s, {first / taken:.2f} times the first")


if __name__ == "__main__":
    main()
