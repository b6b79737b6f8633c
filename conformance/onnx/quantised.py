"""Random small models that ONNX Runtime's static quantiser has quantised, for `optimisers.py`.

A model of floats (convolutions, dense layers or a transformer's encoder, from a seed) is calibrated on random data.
`quantize_static` then writes it with pairs of `QuantizeLinear` and `DequantizeLinear` ("qdq") or with operators of
integers ("qop"). The seed also chooses the types of weights and activations, scales per tensor or per channel, and
whether zero points are zero.
"""

import logging
import random
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from rewritten import Build

logging.getLogger().setLevel(logging.ERROR)

FORMATS = {"qdq": QuantFormat.QDQ, "qop": QuantFormat.QOperator}
CALIBRATIONS = 3


class Net(Build):
    """A model whose shapes are known while it is made."""

    def __init__(self, seed):
        super().__init__(seed)
        self.choose = random.Random(seed)
        self.shapes = {}

    def put(self, kind, shape, *inputs, **attributes):
        name = self.op(kind, *inputs, **attributes)
        self.shapes[name] = list(shape)
        return name

    def scaled(self, *shape):
        return self.weight(*shape, scale=float(np.prod(shape[1:])) ** -0.5)


def convolution(net, x, channels=None):
    n, c, h, w = net.shapes[x]
    m = channels or net.choose.choice([3, 4, 6, 8])
    depthwise = not channels and net.choose.random() < 0.25
    group = c if depthwise else 1
    m = c if depthwise else m
    k = net.choose.choice([1, 3]) if min(h, w) >= 3 else 1
    stride = net.choose.choice([1, 1, 2]) if not channels else 1
    pad = k // 2
    inputs = [x, net.scaled(m, c // group, k, k)]
    if net.choose.random() < 0.7:
        inputs.append(net.weight(m))
    shape = [n, m, (h + 2 * pad - k) // stride + 1, (w + 2 * pad - k) // stride + 1]
    return net.put("Conv", shape, *inputs, kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=group)


def activation(net, x):
    shape = net.shapes[x]
    kind = net.choose.choice(["Relu", "Relu", "Clip", "Sigmoid", "LeakyRelu", "HardSwish", "swish", "Tanh"])
    if kind == "Clip":
        return net.put("Clip", shape, x, net.constant(0), net.constant(6))
    if kind == "swish":
        return net.put("Mul", shape, x, net.put("Sigmoid", shape, x))
    return net.put(kind, shape, x)


def norm(net, x):
    c = net.shapes[x][1]
    positive = net.constant(net.random.random(c) + 0.5)
    return net.put("BatchNormalization", net.shapes[x], x, net.weight(c), net.weight(c), net.weight(c), positive)


def pool(net, x):
    n, c, h, w = net.shapes[x]
    if min(h, w) < 4:
        return x
    kind = net.choose.choice(["MaxPool", "AveragePool"])
    return net.put(kind, [n, c, h // 2, w // 2], x, kernel_shape=[2, 2], strides=[2, 2])


def residual(net, x):
    y = activation(net, convolution(net, x, net.shapes[x][1]))
    return net.put("Add", net.shapes[x], *net.choose.sample([x, y], 2))


def branches(net, x):
    n, c, h, w = net.shapes[x]
    y, z = activation(net, convolution(net, x, 4)), convolution(net, x, 3)
    parts = [y, z] + [x] * net.choose.choice([0, 1])
    return net.put("Concat", [n, sum(net.shapes[p][1] for p in parts), h, w], *parts, axis=1)


def moved(net, x):
    """A transpose that is taken back, with something between."""
    n, c, h, w = net.shapes[x]
    y = net.put("Transpose", [n, h, w, c], x, perm=[0, 2, 3, 1])
    if net.choose.random() < 0.6:
        y = net.put("Add", [n, h, w, c], y, net.weight(c))
    y = activation(net, y)
    return net.put("Transpose", [n, c, h, w], y, perm=[0, 3, 1, 2])


def shuffled(net, x):
    n, c, h, w = net.shapes[x]
    if c % 2:
        return x
    y = net.put("Reshape", [n, 2, c // 2, h, w], x, net.constant([n, 2, c // 2, h, w], np.int64))
    y = net.put("Transpose", [n, c // 2, 2, h, w], y, perm=[0, 2, 1, 3, 4])
    return net.put("Reshape", [n, c, h, w], y, net.constant([n, c, h, w], np.int64))


def larger(net, x):
    n, c, h, w = net.shapes[x]
    if h * w > 80:
        return x
    scales = net.constant([1, 1, 2, 2])
    way = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    return net.put("Resize", [n, c, 2 * h, 2 * w], x, "", scales, **way)


def squeezed(net, x):
    """Each channel times a factor that its mean decides."""
    n, c, h, w = net.shapes[x]
    y = net.put("GlobalAveragePool", [n, c, 1, 1], x)
    y = net.put("Relu", [n, 2, 1, 1], net.put("Conv", [n, 2, 1, 1], y, net.scaled(2, c, 1, 1), net.weight(2)))
    y = net.put("Sigmoid", [n, c, 1, 1], net.put("Conv", [n, c, 1, 1], y, net.scaled(c, 2, 1, 1)))
    return net.put("Mul", [n, c, h, w], x, y)


def dense(net, x, outputs):
    n, c = net.shapes[x]
    if net.choose.random() < 0.5:
        return net.put("Gemm", [n, outputs], x, net.scaled(outputs, c), net.weight(outputs), transB=1)
    y = net.put("MatMul", [n, outputs], x, net.weight(c, outputs, scale=c**-0.5))
    return net.put("Add", [n, outputs], y, net.weight(outputs))


def cnn(net):
    n, c, h, w = net.choose.choice([1, 2]), 3, net.choose.choice([8, 9, 11]), net.choose.choice([8, 10])
    net.shapes["x"] = [n, c, h, w]
    x = convolution(net, "x")
    parts = [convolution, convolution, norm, activation, activation, pool, residual, branches, moved, shuffled, larger, squeezed]
    for _ in range(net.choose.randint(3, 7)):
        x = net.choose.choice(parts)(net, x)
        if net.choose.random() < 0.3:
            x = activation(net, norm(net, convolution(net, x)))
    n, c, h, w = net.shapes[x]
    if net.choose.random() < 0.7:
        y = net.put("GlobalAveragePool", [n, c, 1, 1], x)
        x = dense(net, net.put("Flatten", [n, c], y, axis=1), 5)
        if net.choose.random() < 0.5:
            x = net.put("Softmax", [n, 5], x, axis=-1)
    return net.model({"x": net.shapes["x"]}, x, net.shapes[x])


def mlp(net):
    n, c = net.choose.choice([1, 3]), net.choose.choice([6, 9, 17])
    net.shapes["x"] = [n, c]
    x = "x"
    for _ in range(net.choose.randint(2, 5)):
        y = activation(net, dense(net, x, net.choose.choice([5, 8, c, c])))
        is_same = net.shapes[y] == net.shapes[x]
        x = net.put("Add", net.shapes[y], x, y) if is_same and net.choose.random() < 0.6 else y
    x = dense(net, x, 4)
    if net.choose.random() < 0.5:
        x = net.put("Softmax", net.shapes[x], x, axis=-1)
    return net.model({"x": [n, c]}, x, net.shapes[x])


def transformer(net):
    n, s, width, heads = net.choose.choice([1, 2]), net.choose.choice([5, 6]), 8, net.choose.choice([1, 2])
    whole, words, size = [n, s, width], 20, width // heads

    def linear(x, inputs, outputs):
        y = net.put("MatMul", [n, s, outputs], x, net.weight(inputs, outputs, scale=inputs**-0.5))
        return net.put("Add", [n, s, outputs], *net.choose.sample([y, net.weight(outputs)], 2))

    def head(x, perm):
        y = net.put("Reshape", [n, s, heads, size], x, net.constant([n, s, heads, size], np.int64))
        shape = [[n, s, heads, size][k] for k in perm]
        return net.put("Transpose", shape, y, perm=perm)

    def normalised(x):
        scale = net.constant(1 + 0.2 * net.random.standard_normal(width))
        return net.put("LayerNormalization", whole, x, scale, net.weight(width), axis=-1)

    x = net.put("Gather", whole, net.weight(words, width, scale=1), "ids")
    x = net.put("Add", whole, x, net.weight(s, width))
    for _ in range(net.choose.randint(1, 2)):
        query, key, value = (linear(x, width, width) for _ in range(3))
        scores = net.put("MatMul", [n, heads, s, s], head(query, [0, 2, 1, 3]), head(key, [0, 2, 3, 1]))
        scores = net.put("Div", [n, heads, s, s], scores, net.constant(size**0.5))
        scores = net.put("Softmax", [n, heads, s, s], scores, axis=-1)
        mixed = net.put("MatMul", [n, heads, s, size], scores, head(value, [0, 2, 1, 3]))
        mixed = net.put("Transpose", [n, s, heads, size], mixed, perm=[0, 2, 1, 3])
        mixed = net.put("Reshape", whole, mixed, net.constant(whole, np.int64))
        x = normalised(net.put("Add", whole, linear(mixed, width, width), x))
        inner = linear(x, width, 12)
        if net.choose.random() < 0.5:
            inner = net.put("Relu", [n, s, 12], inner)
        else:
            turned = net.put("Erf", [n, s, 12], net.put("Div", [n, s, 12], inner, net.constant(2**0.5)))
            inner = net.put("Mul", [n, s, 12], inner, net.put("Add", [n, s, 12], turned, net.constant(1)))
        x = normalised(net.put("Add", whole, x, linear(inner, 12, width)))
    model = net.model({"ids": [n, s]}, x, whole)
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    return model


FAMILIES = {"cnn": cnn, "mlp": mlp, "transformer": transformer}


def feeds(model, random):
    """One set of inputs."""
    values = {}
    for port in model.graph.input:
        shape = [d.dim_value for d in port.type.tensor_type.shape.dim]
        if port.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            values[port.name] = random.integers(0, 20, shape)
        else:
            values[port.name] = random.standard_normal(shape).astype(np.float32)
    return values


class Calibration(CalibrationDataReader):
    def __init__(self, model, seed):
        generator = np.random.default_rng(seed)
        self.left = iter([feeds(model, generator) for _ in range(CALIBRATIONS)])

    def get_next(self):
        return next(self.left, None)


def make(family, form, seed):
    """The quantised model of a family in a format; `None` where the quantiser refuses it."""
    model = FAMILIES[family](Net(seed))
    choose = random.Random(f"{family} {form} {seed}")
    activations = choose.choice([QuantType.QUInt8, QuantType.QUInt8, QuantType.QInt8])
    # There are no operators for signed activations and unsigned weights.
    weights = QuantType.QInt8 if activations == QuantType.QInt8 else choose.choice([QuantType.QInt8, QuantType.QUInt8])
    options = {
        "WeightSymmetric": choose.random() < 0.7,
        "ActivationSymmetric": choose.random() < 0.2,
    }
    if form == "qdq":
        options["AddQDQPairToWeight"] = choose.random() < 0.25
        options["DedicatedQDQPair"] = choose.random() < 0.25
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "float.onnx"), Path(folder, "quantised.onnx")
        onnx.save(onnx.shape_inference.infer_shapes(model), source)
        quantize_static(
            source,
            target,
            Calibration(model, seed),
            quant_format=FORMATS[form],
            per_channel=choose.random() < 0.5,
            activation_type=activations,
            weight_type=weights,
            extra_options=options,
        )
        return onnx.load(target)
