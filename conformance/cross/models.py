"""The models, with inputs and ONNX Runtime's outputs: small ones of each kind.

Weights are random, scaled so that activations keep their size from layer to layer: a wrong index changes the
outputs far more than the tolerance.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent / "onnx"))

import built  # noqa: E402


@dataclass
class Model:
    name: str
    path: Path
    inputs: dict
    tolerance: float = 1e-4

    def expected(self):
        """What ONNX Runtime computes on this machine, by output."""
        session = onnxruntime.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, self.inputs)))


def digits(_):
    folder = ROOT / "examples/digits"
    with np.load(folder / "test_inputs.npz") as archive:
        return Model("digits", folder / "digits.onnx", dict(archive))


class Network(built.Builder):
    """Layers of convolutional networks and transformers."""

    def convolution(self, x, fan_in, fan_out, kernel, **attributes):
        w = self.weights(fan_out, fan_in, kernel, kernel)
        b = self.weights(fan_out, fan=16)
        return self.node("Conv", x, w, b, kernel_shape=[kernel, kernel], **attributes)

    def linear(self, x, fan_in, fan_out):
        product = self.node("MatMul", x, self.weights(fan_in, fan_out, fan=fan_in))
        return self.node("Add", product, self.weights(fan_out, fan=16))

    def normalised(self, x, width):
        scale = self.constant(self.random.uniform(0.5, 1.5, width).astype(np.float32))
        return self.node("LayerNormalization", x, scale, self.weights(width, fan=16), axis=-1)

    def saved(self, output, path):
        onnx.save(self.model(output), path)
        return path


def squeezenet(folder):
    """SqueezeNet 1.1 by its structure: fire modules, which squeeze to few channels and expand to two halves."""
    net = Network(11)
    image = net.random.standard_normal((1, 3, 97, 97)).astype(np.float32)
    x = net.node("Relu", net.convolution(net.input("image", image), 3, 64, 3, strides=[2, 2]))
    channels = 64
    fires = [(16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256)]
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])
    for fire in fires:
        if fire is None:
            x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])
            continue
        squeeze, expand = fire
        s = net.node("Relu", net.convolution(x, channels, squeeze, 1))
        left = net.node("Relu", net.convolution(s, squeeze, expand, 1))
        right = net.node("Relu", net.convolution(s, squeeze, expand, 3, pads=[1, 1, 1, 1]))
        x = net.node("Concat", left, right, axis=1)
        channels = 2 * expand
    x = net.node("GlobalAveragePool", net.node("Relu", net.convolution(x, channels, 1000, 1)))
    path = net.saved(net.node("Flatten", x), folder / "squeezenet.onnx")
    return Model("squeezenet", path, {"image": image})


def transformer(folder, width=66, heads=3, length=37, layers=2):
    """Attention and linear layers over a sequence, with sizes that are multiples of nothing."""
    net = Network(12)
    words = net.random.standard_normal((1, length, width)).astype(np.float32)
    x, each = net.input("words", words), width // heads
    split = net.constant(np.array([1, length, heads, each]))
    merged = net.constant(np.array([1, length, width]))
    root = net.constant(np.array(1 / np.sqrt(each), np.float32))
    for _ in range(layers):
        y = net.normalised(x, width)
        q, k, v = (
            net.node("Transpose", net.node("Reshape", net.linear(y, width, width), split), perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = net.node("Softmax", net.node("Mul", net.node("MatMul", q, k), root), axis=-1)
        y = net.node("Transpose", net.node("MatMul", scores, v), perm=[0, 2, 1, 3])
        x = net.node("Add", x, net.linear(net.node("Reshape", y, merged), width, width))
        y = net.linear(net.normalised(x, width), width, 3 * width)
        gate = net.node("Mul", y, net.node("Sigmoid", y))
        x = net.node("Add", x, net.linear(gate, 3 * width, width))
    path = net.saved(net.normalised(x, width), folder / "transformer.onnx")
    return Model("transformer", path, {"words": words})


def from_builder(name, function, folder, tolerance):
    """A model of `conformance/onnx/built.py`."""
    model, inputs = function()
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return Model(name, path, inputs, tolerance)


def all_models(folder):
    """All of them; what is made goes into a folder."""
    yield digits(folder)
    yield squeezenet(folder)
    yield transformer(folder)
    # A value that lies between two integers may become either.
    yield from_builder("int8 convolutions", built.integer_convolutions, folder, 2e-2)
    yield from_builder("int8 products", built.dynamic_integers, folder, 2e-2)
