#!/usr/bin/env python3
"""Whether `tilewright verify` decides what ONNX Runtime's optimiser made of a model.

    optimisers.py [--only SUBSTRING] [--binary PROGRAM] [--timeout SECONDS]

Each model goes through the levels basic, extended and all; the saved result is compared with the
model. Floats are compared as they are computed, so that a fusion which rounds in another way differs;
the first level must be equal where it folds no numbers of the model into others. Then wrong fusions are made on purpose, which must be found: swapped operands, a wrong
axis, a dropped scale, a transposed square, a pad that is off by one. A wrong model that is called equal is a failure.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import environment

environment.enter()

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

LEVELS = {
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
# Models in which the first level changes the graph only, and no weights.
EQUAL = {"chain", "bert", "block", "squeezenet"}
ANSWERS = {0: "equal", 1: "differ", 2: "refused", 3: "undecided"}


class Build:
    """A model that is made node by node, with seeded weights."""

    def __init__(self, seed=1):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, *shape, scale=0.3):
        self.count += 1
        value = (self.random.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(value, f"w{self.count}"))
        return f"w{self.count}"

    def constant(self, value, dtype=np.float32):
        self.count += 1
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), f"w{self.count}"))
        return f"w{self.count}"

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        self.nodes.append(helper.make_node(kind, list(inputs), [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def model(self, inputs, output, shape):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "main",
            [info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
            [info(output, TensorProto.FLOAT, shape)],
            self.weights,
        )
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)


def chain(n=97, products=8):
    """Products of squares, each of the result before it and a weight."""
    b = Build()
    x = "x"
    for _ in range(products):
        x = b.op("MatMul", x, b.weight(n, n, scale=n**-0.5))
    return b.model({"x": [n, n]}, x, [n, n])


def bert(layers=2, words=12, width=32, heads=4):
    """The encoder of BERT: attention, feed-forward with GELU, layer normalisation."""
    b = Build()
    x = "x"
    head = width // heads
    split = b.constant([1, words, heads, head], np.int64)
    whole = b.constant([1, words, width], np.int64)
    for _ in range(layers):
        def linear(of, n, m):
            return b.op("Add", b.op("MatMul", of, b.weight(n, m, scale=n**-0.5)), b.weight(m))

        def parts(of, perm):
            return b.op("Transpose", b.op("Reshape", of, split), perm=perm)

        query, key = (linear(x, width, width) for _ in range(2))
        value = linear(x, width, width)
        query, key = parts(query, [0, 2, 1, 3]), parts(key, [0, 2, 3, 1])
        value = parts(value, [0, 2, 1, 3])
        scores = b.op("Div", b.op("MatMul", query, key), b.constant(head**0.5))
        mixed = b.op("MatMul", b.op("Softmax", scores, axis=-1), value)
        mixed = b.op("Reshape", b.op("Transpose", mixed, perm=[0, 2, 1, 3]), whole)
        x = b.op("Add", linear(mixed, width, width), x)
        x = b.op("LayerNormalization", x, b.weight(width), b.weight(width), axis=-1)
        inner = linear(x, width, 4 * width)
        scaled = b.op("Div", inner, b.constant(2**0.5))
        gelu = b.op("Mul", inner, b.op("Add", b.op("Erf", scaled), b.constant(1.0)))
        gelu = b.op("Mul", gelu, b.constant(0.5))
        x = b.op("Add", linear(gelu, 4 * width, width), x)
        x = b.op("LayerNormalization", x, b.weight(width), b.weight(width), axis=-1)
    return b.model({"x": [1, words, width]}, x, [1, words, width])


def block(pads=(1, 1, 1, 1), swapped=False, axis=1, scale=0.5, transposed=False, fused=False):
    """A small block; its arguments are what a wrong fusion gets wrong."""
    b = Build()
    conv = b.weight(6, 5, 3, 3)
    x = b.op("Conv", "x", conv, b.weight(6), pads=list(pads), kernel_shape=[3, 3])
    x = b.op("Relu", x)
    rows = b.op("Reshape", x, b.constant([6, 49], np.int64))
    square = b.op("MatMul", rows, b.weight(49, 6))
    if fused:
        square = b.op("Transpose", b.op("Transpose", square, perm=[1, 0]), perm=[1, 0])
    if transposed:
        square = b.op("Transpose", square, perm=[1, 0])
    square = b.op("Mul", square, b.constant(scale))
    weight = b.weight(6, 6)
    pair = (weight, square) if swapped else (square, weight)
    y = b.op("Sub", b.op("MatMul", *pair), b.weight(6, 6))
    y = b.op("Softmax", y, axis=axis)
    return b.model({"x": [1, 5, 7, 7]}, y, [6, 6])


WRONG = {
    "swapped operands": {"swapped": True},
    "wrong axis": {"axis": 0},
    "another scale": {"scale": 0.25},
    "transposed square": {"transposed": True},
    "pads off by one": {"pads": (0, 0, 2, 2)},
    "pads off in one axis": {"pads": (1, 0, 1, 2)},
}


def light(name):
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    return onnx.load(folder / f"light_{name}.onnx")


def optimised(source, level, target):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def verify(program, a, b, timeout):
    """The answer, how long it took, and what was said."""
    start = time.monotonic()
    try:
        command = [program, "verify", str(a), str(b)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "no answer", timeout, ""
    said = (done.stdout + done.stderr).strip().splitlines()
    answer = ANSWERS.get(done.returncode, f"exit {done.returncode}")
    return answer, time.monotonic() - start, said[0] if said else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--binary")
    parser.add_argument("--timeout", type=float, default=120)
    arguments = parser.parse_args()
    program = arguments.binary or environment.binary()
    models = {
        "chain": chain,
        "bert": bert,
        "block": block,
        "squeezenet": lambda: light("squeezenet"),
        "resnet50": lambda: light("resnet50"),
        "shufflenet": lambda: light("shufflenet"),
    }
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, make in models.items():
            if arguments.only not in name:
                continue
            source = folder / f"{name}.onnx"
            onnx.save(make(), source)
            for level in LEVELS:
                target = folder / f"{name}_{level}.onnx"
                optimised(source, level, target)
                answer, seconds, said = verify(program, source, target, arguments.timeout)
                print(f"{name:12} {level:9} {answer:10} {seconds:6.1f} s  {said}", flush=True)
                failures += level == "basic" and name in EQUAL and answer != "equal"
        if arguments.only in "wrong":
            right = folder / "right.onnx"
            onnx.save(block(), right)
            same = folder / "same.onnx"
            onnx.save(block(fused=True), same)
            answer, seconds, said = verify(program, right, same, arguments.timeout)
            print(f"{'transposes that cancel':22} {answer:10} {seconds:6.1f} s  {said}")
            failures += answer != "equal"
            for what, change in WRONG.items():
                wrong = folder / "wrong.onnx"
                onnx.save(block(**change), wrong)
                answer, seconds, said = verify(program, right, wrong, arguments.timeout)
                print(f"{what:22} {answer:10} {seconds:6.1f} s  {said}", flush=True)
                failures += answer != "differ"
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
