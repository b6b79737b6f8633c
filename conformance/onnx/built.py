"""Models that are built here, with random weights: recurrence and quantised arithmetic.

Each function gives a model and its inputs. Weights are scaled so that activations keep their size
from layer to layer: a wrong index changes the outputs far more than the threshold.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Builder:
    """Nodes and constants of a graph, with a name for each value."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs = [], [], []

    def input(self, name, array):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *shape, fan=None):
        fan = fan or int(np.prod(shape[1:]))
        values = self.random.standard_normal(shape) / np.sqrt(fan)
        return self.constant(values.astype(np.float32))

    def signed(self, *shape):
        """Weights of 7 bits: without 8-bit dot instructions, ONNX Runtime saturates pairs of larger
        products in 16 bits."""
        return self.random.integers(-64, 64, shape, np.int8)

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def recurrent(self, op, x, size, hidden, directions=1, **attributes):
        """The results of all steps, [steps, batch, directions * hidden]."""
        gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
        w = self.weights(directions, gates * hidden, size, fan=size)
        r = self.weights(directions, gates * hidden, hidden, fan=hidden)
        b = self.weights(directions, 2 * gates * hidden, fan=16)
        way = "bidirectional" if directions == 2 else "forward"
        y = self.node(op, x, w, r, b, hidden_size=hidden, direction=way, **attributes)
        y = self.node("Transpose", y, perm=[0, 2, 1, 3])
        shape = self.constant(np.array([0, 0, directions * hidden]))
        return self.node("Reshape", y, shape)

    def model(self, output):
        result = helper.make_empty_tensor_value_info(output)
        graph = helper.make_graph(self.nodes, "built", self.inputs, [result], self.constants)
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8
        )
        return onnx.shape_inference.infer_shapes(made)


def gru_tagger():
    """Words to tags: an embedding, a GRU, a linear layer and a softmax."""
    b = Builder(1)
    words = b.random.integers(0, 500, (37, 2))
    x = b.node("Gather", b.weights(500, 65, fan=1), b.input("words", words))
    y = b.recurrent("GRU", x, 65, 77, linear_before_reset=1)
    y = b.node("MatMul", y, b.weights(77, 19, fan=77))
    return b.model(b.node("Softmax", y, axis=-1)), {"words": words}


def lstm_ocr():
    """A line of text to letters: convolutions, a bidirectional LSTM over the columns, letters."""
    b = Builder(2)
    line = b.random.standard_normal((1, 3, 32, 160)).astype(np.float32)
    x, channels = b.input("line", line), 3
    for wide in (32, 64, 96):
        w = b.weights(wide, channels, 3, 3)
        x = b.node("Relu", b.node("Conv", x, w, pads=[1] * 4))
        x = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2 if channels == 3 else 1],
                   pads=[0, 0, 0, 0 if channels == 3 else 1])
        channels = wide
    x = b.node("Transpose", x, perm=[3, 0, 1, 2])
    x = b.node("Reshape", x, b.constant(np.array([0, 0, -1])))
    x = b.recurrent("LSTM", x, 96 * 4, 96, directions=2)
    x = b.node("MatMul", x, b.weights(192, 97, fan=192))
    return b.model(b.node("LogSoftmax", x, axis=-1)), {"line": line}


def lstm_voice():
    """Is somebody speaking? A spectrum by convolution, an LSTM, a sigmoid."""
    b = Builder(3)
    sound = b.random.standard_normal((1, 1, 4096)).astype(np.float32)
    angle = 2 * np.pi * np.outer(np.arange(129), np.arange(256)) / 256
    basis = np.concatenate([np.cos(angle), np.sin(angle)]) * np.hanning(256)
    basis = b.constant((basis / 16)[:, None].astype(np.float32))
    parts = b.node("Conv", b.input("sound", sound), basis, strides=[128])
    parts = b.node("Split", b.node("Mul", parts, parts), outputs=2, axis=1)
    x = b.node("Sqrt", b.node("Add", *parts))
    x = b.node("Transpose", x, perm=[2, 0, 1])
    x = b.recurrent("LSTM", x, 129, 128)
    x = b.node("MatMul", x, b.weights(128, 1, fan=128))
    return b.model(b.node("Sigmoid", x)), {"sound": sound}


def dynamic_integers():
    """Layers whose inputs are quantised on the way, with products of integers."""
    b = Builder(4)
    x0 = b.random.standard_normal((5, 65)).astype(np.float32)
    x, size = b.input("x", x0), 65
    for wide in (77, 33):
        q, scale, zero = b.node("DynamicQuantizeLinear", x, outputs=3)
        w = b.constant(b.signed(size, wide))
        own = np.float32(1 / (32 * np.sqrt(size)))
        y = b.node("MatMulInteger", q, w, zero, b.constant(np.int8(0)))
        y = b.node("Cast", y, to=TensorProto.FLOAT)
        y = b.node("Mul", y, b.node("Mul", scale, b.constant(own)))
        x, size = b.node("Relu", y), wide
    return b.model(x), {"x": x0}


def integer_convolutions():
    """Convolutions of integers with a scale for each channel."""
    b = Builder(5)
    x0 = b.random.integers(0, 256, (1, 3, 24, 24)).astype(np.uint8)
    x, channels = b.input("x", x0), 3
    scale, zero = b.constant(np.float32(0.02)), b.constant(np.uint8(120))
    for wide in (17, 32):
        w = b.constant(b.signed(wide, channels, 3, 3))
        own = b.random.uniform(0.5, 1.5, wide) / (32 * np.sqrt(9 * channels))
        own = b.constant(own.astype(np.float32))
        bias = b.constant(b.random.integers(-900, 900, wide).astype(np.int32))
        signs = b.constant(np.zeros(wide, np.int8))
        x = b.node("QLinearConv", x, scale, zero, w, own, signs, scale, zero, bias, pads=[1] * 4)
        channels = wide
    return b.model(x), {"x": x0}


class Quantizer:
    """Parts of a network whose values are 8-bit integers between its operators: each operator reads
    dequantised numbers and its result is quantised again."""

    def __init__(self, b):
        self.b = b

    def quantized(self, x, scale, zero):
        """The numbers that 8-bit integers stand for, and their scale."""
        scale = np.float32(scale)
        parts = self.b.constant(scale), self.b.constant(np.uint8(zero))
        q = self.b.node("QuantizeLinear", x, *parts)
        return self.b.node("DequantizeLinear", q, *parts), scale

    def weights(self, shape, x_scale, axis):
        """Weights and a bias, with a scale for each output channel."""
        b, channels, fan = self.b, shape[axis], int(np.prod(shape)) // shape[axis]
        scale = b.random.uniform(0.7, 1.4, channels) * np.sqrt(2 / fan) / 37
        scale = scale.astype(np.float32)
        zero = b.constant(np.zeros(channels, np.int8))
        w = b.node("DequantizeLinear", b.constant(b.signed(*shape)), b.constant(scale), zero, axis=axis)
        bias = b.constant(b.random.integers(-900, 900, channels).astype(np.int32))
        bias = b.node("DequantizeLinear", bias, b.constant(x_scale * scale), axis=0)
        return w, bias

    def conv(self, x, shape, relu, pads=1, stride=1):
        (x, scale), size = x, shape[2]
        w, bias = self.weights(shape, scale, 0)
        y = self.b.node("Conv", x, w, bias, pads=[pads] * 4, strides=[stride] * 2, kernel_shape=[size] * 2)
        if relu:
            return self.quantized(self.b.node("Relu", y), 6 / 255, 0)
        return self.quantized(y, 8 / 255, 128)


def integer_residual():
    """A residual network as tools for quantisation write it: QuantizeLinear and DequantizeLinear
    around every operator."""
    b = Builder(6)
    q = Quantizer(b)
    image = b.random.standard_normal((1, 3, 112, 112)).astype(np.float32)
    x = q.quantized(b.input("image", image), 8 / 255, 128)
    x = q.conv(x, (32, 3, 3, 3), True, stride=2)
    pooled = b.node("MaxPool", x[0], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x, channels = q.quantized(pooled, x[1], 0), 32
    for wide, stride in ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1)):
        y = q.conv(x, (wide, channels, 3, 3), True, stride=stride)
        y = q.conv(y, (wide, wide, 3, 3), False)
        if stride == 2:
            x = q.conv(x, (wide, channels, 1, 1), False, pads=0, stride=2)
        x = q.quantized(b.node("Relu", b.node("Add", y[0], x[0])), 9 / 255, 0)
        channels = wide
    x = q.quantized(b.node("GlobalAveragePool", x[0]), 4 / 255, 0)
    x, scale = b.node("Flatten", x[0]), x[1]
    w, bias = q.weights((100, channels), scale, 0)
    y = b.node("Gemm", x, w, bias, transB=1)
    y = b.node("QuantizeLinear", y, b.constant(np.float32(8 / 255)), b.constant(np.uint8(128)))
    return b.model(y), {"image": image}


def dynamic_convolutions():
    """Convolutions and a linear layer whose inputs are quantised on the way."""
    b = Builder(7)
    image = b.random.standard_normal((1, 8, 56, 56)).astype(np.float32)

    def layer(op, x, shape, fan, **attributes):
        q, scale, zero = b.node("DynamicQuantizeLinear", x, outputs=3)
        w = b.constant(b.signed(*shape))
        own = np.float32(1.4 / (37 * np.sqrt(fan)))
        y = b.node(op, q, w, zero, b.constant(np.int8(0)), **attributes)
        y = b.node("Cast", y, to=TensorProto.FLOAT)
        return b.node("Mul", y, b.node("Mul", scale, b.constant(own)))

    x, channels = b.input("image", image), 8
    for wide, stride in ((48, 1), (64, 2), (96, 2)):
        y = layer("ConvInteger", x, (wide, channels, 3, 3), 9 * channels, pads=[1] * 4, strides=[stride] * 2)
        y = b.node("Add", y, b.constant(b.random.standard_normal((1, wide, 1, 1)).astype(np.float32)))
        x, channels = b.node("Relu", y), wide
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    return b.model(layer("MatMulInteger", x, (channels, 50), channels)), {"image": image}


MODELS = {
    "gru_tagger": gru_tagger,
    "lstm_ocr": lstm_ocr,
    "lstm_voice": lstm_voice,
    "dynamic_integers": dynamic_integers,
    "integer_convolutions": integer_convolutions,
    "integer_residual": integer_residual,
    "dynamic_convolutions": dynamic_convolutions,
}
