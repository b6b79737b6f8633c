#!/usr/bin/env python3
"""Trains a small language model on a text, letter by letter, and writes it as ONNX.

    train.py [--text FILE] [--out FILE]

It is one layer of a decoder with weights of 4 and 8 bits, as onnxruntime-genai's builder writes them, and no size is a
multiple of a vector:

    ids [1, n]  -> one of 67 signs a letter       x
    norm, 8-bit products, GroupQueryAttention     9 heads, one of keys and values, rotations, a cache
    4-bit product, sum with x, norm
    two 4-bit products of 67 x 437, SiLU, product
    8-bit product of 437 features and letters     -> logits

Only the last product is trained, by least squares, which takes a second; the rest is made. The head `h` looks `h`
letters back: its queries and keys are the same for all letters, and turned by angles that agree at that
distance alone. What it gives is which letter stood there, and random products of these are the features
of which the logits are sums.

The cache of keys and values has room for all letters from the start. A run reads and writes
`past_key` and `past_value` at `length - n` and on, where `length` counts the letters with the new ones.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEED = 5
WIDTH, INNER = 67, 437  # signs of a letter, features
HEADS, SIZE = 9, 16  # heads, each of which reads one letter, and their numbers
ROOM = 500  # letters that the cache holds
SHARPNESS = 6.0  # of the softmax, which shall see one letter alone
NEARNESS = 0.8  # what a letter counts against the one behind it
HERE = Path(__file__).parent


def angles():
    """A rotation for each pair of numbers of a head: of some random ones those that tell distances apart best."""
    random = np.random.default_rng(SEED)
    tries = random.uniform(0.05, np.pi, (200, SIZE // 2))
    distances = np.arange(1, ROOM)
    others = [np.cos(distances[:, None] * t).sum(1).max() for t in tries]
    return tries[np.argmin(others)]


class Graph:
    """Nodes and weights of a model that is written."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def constant(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def op(self, kind, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def linear(self, x, weights, bits, block=32):
        """The product of `x` and weights `[rows, columns]`, each column in blocks with a scale."""
        rows, columns = weights.shape
        blocks = -(-rows // block)
        w = np.zeros((columns, blocks * block), np.float32)
        w[:, :rows] = weights.T
        w = w.reshape(columns, blocks, block)
        middle = 1 << (bits - 1)
        scales = np.abs(w).max(2) / (middle - 1)
        steps = np.round(w / np.where(scales == 0, 1, scales)[..., None]) + middle
        packed = steps.astype(np.uint8)
        if bits == 4:
            packed = packed[..., ::2] | packed[..., 1::2] << 4
        sizes = {"K": rows, "N": columns, "bits": bits, "block_size": block}
        operands = (x, self.constant(packed), self.constant(scales.astype(np.float32).ravel()))
        return self.op("MatMulNBits", *operands, domain="com.microsoft", **sizes)

    def norm(self, x):
        ones = self.constant(np.ones(WIDTH, np.float32))
        return self.op("SimplifiedLayerNormalization", x, ones, axis=-1, epsilon=1e-6)


def model(letters, head=None):
    """The model; without a trained `head`, its output are the features."""
    random = np.random.default_rng(SEED)
    graph = Graph()
    signs = random.choice([-1.0, 1.0], (letters, WIDTH)).astype(np.float32)
    signs[:, 0] = 1  # what queries and keys are made of
    x = graph.op("Gather", graph.constant(signs), "ids")
    start = graph.norm(x)
    turns = angles()
    back = np.arange(HEADS)[:, None] * turns
    queries, keys = np.zeros((WIDTH, HEADS * SIZE)), np.zeros((WIDTH, SIZE))
    queries[0] = SHARPNESS * np.concatenate([np.cos(back), -np.sin(back)], 1).ravel()
    keys[0, : SIZE // 2] = 1
    values = random.standard_normal((WIDTH, SIZE)) * WIDTH**-0.5
    q, k, v = (graph.linear(start, w, 8) for w in (queries, keys, values))
    turned = np.arange(ROOM)[:, None] * turns
    cos, sin = (graph.constant(f(turned).astype(np.float32)) for f in (np.cos, np.sin))
    one = graph.constant(np.array(1, np.int32))
    last = graph.op("Sub", "length", one)
    total = graph.op("Squeeze", "length")
    cache = ["past_key", "past_value"]
    made = ["mixed", "present_key", "present_value"]
    choices = {"num_heads": HEADS, "kv_num_heads": 1, "do_rotary": 1, "scale": 1.0}
    node = helper.make_node(
        "GroupQueryAttention",
        [q, k, v, *cache, last, total, cos, sin],
        made,
        domain="com.microsoft",
        **choices,
    )
    graph.nodes.append(node)
    rows = HEADS * SIZE
    near = np.repeat(NEARNESS ** np.arange(HEADS), SIZE)[:, None]
    mixed = graph.linear("mixed", random.standard_normal((rows, WIDTH)) * near, 4)
    x = graph.norm(graph.op("Add", x, mixed))
    gate, up = (
        graph.linear(x, random.standard_normal((WIDTH, INNER)) * 2 * WIDTH**-0.5, 4)
        for _ in range(2)
    )
    features = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), up)
    columns = INNER if head is None else letters
    result = features if head is None else graph.linear(features, head, 8)
    graph.nodes.append(helper.make_node("Identity", [result], ["logits"]))

    def info(name, shape, dtype=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, dtype, shape)

    shape = [1, 1, ROOM, SIZE]
    inputs = [info("ids", [1, "n"], TensorProto.INT64), info("length", [1], TensorProto.INT32)]
    inputs += [info(name, shape) for name in cache]
    outputs = [info("logits", [1, "n", columns]), *(info(name, shape) for name in made[1:])]
    body = helper.make_graph(graph.nodes, "text", inputs, outputs, graph.weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=10)


def train(text, run):
    """The letters that a text has, and a model that goes on as it does.

    `run` gives what a model computes of its inputs, `run(model, inputs)`.
    """
    letters = sorted(set(text))
    if not HEADS < len(text) <= ROOM:
        raise ValueError(f"the text has {len(text)} letters: more than {HEADS}, at most {ROOM}")
    ids = np.array([[letters.index(c) for c in text]])
    empty = np.zeros((1, 1, ROOM, SIZE), np.float32)
    length = np.array([len(text)], np.int32)
    inputs = {"ids": ids, "length": length, "past_key": empty, "past_value": empty}
    features = run(model(len(letters)), inputs)[0][0, :-1].astype(np.float64)
    wanted = 10 * np.eye(len(letters))[ids[0, 1:]]
    # A little less than an exact fit, so that the rounding of weights does not matter.
    square = features.T @ features
    square += 1e-5 * np.trace(square) / INNER * np.eye(INNER)
    return "".join(letters), model(len(letters), np.linalg.solve(square, features.T @ wanted))


def learn(text, out):
    """Trains on a text, and writes the model."""

    def run(made, inputs):
        import tilewright

        path = Path(out).with_suffix(".features.onnx")
        onnx.save(made, path)
        try:
            return tilewright.load(str(path)).compile()(**inputs)
        finally:
            path.unlink()

    letters, trained = train(text, run)
    helper.set_model_props(trained, {"letters": letters})
    onnx.save(trained, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=HERE / "text.txt")
    parser.add_argument("--out", type=Path, default=HERE / "text.onnx")
    arguments = parser.parse_args()
    learn(arguments.text.read_text(encoding="utf-8"), arguments.out)


if __name__ == "__main__":
    main()
