"""Models whose optimised forms are compared with them: random weights, small, one for each kind of rewriting.

Each function gives a model. What an optimiser does to them: folds constants and norms, fuses activations, biases,
residual sums, attention and norms, moves transposes, merges products, changes the layout of convolutions.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


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

    def model(self, inputs, output, shape, version=17):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "main",
            [info(name, TensorProto.FLOAT, given) for name, given in inputs.items()],
            [info(output, TensorProto.FLOAT, shape)],
            self.weights,
        )
        opset = [helper.make_opsetid("", version)]
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


def norms(channels=21, size=14):
    """Convolutions with batch normalisation, clipped activations, depthwise ones and squeeze-and-excitation."""
    b = Build(2)

    def normed(x, n):
        variance = b.constant(np.abs(b.random.standard_normal(n)).astype(np.float32) + 0.5)
        return b.op("BatchNormalization", x, b.weight(n), b.weight(n), b.weight(n), variance, epsilon=1e-5)

    x = normed(b.op("Conv", "x", b.weight(channels, 3, 3, 3), pads=[1, 1, 1, 1]), channels)
    x = b.op("Clip", x, b.constant(0.0), b.constant(6.0))
    y = normed(b.op("Conv", x, b.weight(channels, 1, 3, 3), pads=[1, 1, 1, 1], group=channels), channels)
    y = b.op("HardSwish", y)
    scale = b.op("GlobalAveragePool", y)
    scale = b.op("Relu", b.op("Conv", scale, b.weight(5, channels, 1, 1), b.weight(5)))
    scale = b.op("HardSigmoid", b.op("Conv", scale, b.weight(channels, 5, 1, 1), b.weight(channels)))
    y = b.op("Mul", y, scale)
    x = b.op("Add", normed(b.op("Conv", y, b.weight(channels, channels, 1, 1)), channels), x)
    return b.model({"x": [1, 3, size, size]}, x, [1, channels, size, size], 17)


def residual(channels=32, size=12):
    """A residual network whose channels fill blocks, with pools."""
    b = Build(3)
    x = b.op("Relu", b.op("Conv", "x", b.weight(channels, 3, 3, 3), b.weight(channels), pads=[1] * 4))
    for _ in range(2):
        y = b.op("Relu", b.op("Conv", x, b.weight(channels, channels, 3, 3, scale=0.06), b.weight(channels), pads=[1] * 4))
        y = b.op("Conv", y, b.weight(channels, channels, 3, 3, scale=0.06), b.weight(channels), pads=[1] * 4)
        x = b.op("Relu", b.op("Add", y, x))
    x = b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.op("Conv", x, b.weight(40, channels, 1, 1), b.weight(40))
    x = b.op("Flatten", b.op("GlobalAveragePool", x))
    x = b.op("Gemm", x, b.weight(11, 40), b.weight(11), transB=1)
    return b.model({"x": [1, 3, size, size]}, x, [1, 11])


def scaled(channels=19):
    """Products and sums with constants around convolutions, which fold into their weights."""
    b = Build(4)
    x = b.op("Mul", b.op("Conv", "x", b.weight(channels, 3, 3, 3), b.weight(channels)), b.weight(1, channels, 1, 1))
    x = b.op("Add", x, b.weight(1, channels, 1, 1))
    x = b.op("LeakyRelu", x, alpha=0.1)
    x = b.op("Conv", b.op("Pad", x, b.constant([0, 0, 1, 1, 0, 0, 1, 1], np.int64)), b.weight(7, channels, 3, 3), b.weight(7))
    x = b.op("Sigmoid", x)
    return b.model({"x": [1, 3, 9, 9]}, x, [1, 7, 7, 7])


def perceptron(rows=13):
    """Products with biases, activations of several kinds, and a norm made of its parts."""
    b = Build(5)
    x = "x"
    for n, m, kind in ((37, 53, "Relu"), (53, 41, "Tanh"), (41, 37, "Sigmoid")):
        x = b.op(kind, b.op("Add", b.op("MatMul", x, b.weight(n, m)), b.weight(m)))
    axes = b.constant([-1], np.int64)
    mean = b.op("ReduceMean", x, axes, keepdims=1)
    less = b.op("Sub", x, mean)
    square = b.op("Pow", less, b.constant(2.0))
    spread = b.op("Sqrt", b.op("Add", b.op("ReduceMean", square, axes, keepdims=1), b.constant(1e-5)))
    x = b.op("Add", b.op("Mul", b.op("Div", less, spread), b.weight(37)), b.weight(37))
    x = b.op("Gemm", x, b.weight(37, 9), b.weight(9), alpha=0.5)
    return b.model({"x": [rows, 37]}, x, [rows, 9], 18)


def quick_gelu(rows=11):
    """Gates: SiLU, the quick GELU, GELU by tanh, and a softmax with a scale."""
    b = Build(6)
    x = b.op("MatMul", "x", b.weight(23, 29))
    x = b.op("Mul", x, b.op("Sigmoid", b.op("Mul", x, b.constant(1.702))))
    x = b.op("MatMul", x, b.weight(29, 23))
    cube = b.op("Mul", b.op("Pow", x, b.constant(3.0)), b.constant(0.044715))
    inner = b.op("Mul", b.op("Add", x, cube), b.constant(0.7978845608))
    x = b.op("Mul", b.op("Mul", x, b.constant(0.5)), b.op("Add", b.op("Tanh", inner), b.constant(1.0)))
    x = b.op("Softmax", b.op("Div", b.op("MatMul", x, b.weight(23, 17)), b.constant(3.0)), axis=-1)
    return b.model({"x": [rows, 23]}, x, [rows, 17])


def moved(channels=12):
    """Transposes, reshapes and slices that cancel or move, and constants that fold."""
    b = Build(7)
    x = b.op("Transpose", "x", perm=[0, 2, 3, 1])
    x = b.op("Relu", x)
    x = b.op("Transpose", x, perm=[0, 3, 1, 2])
    x = b.op("Conv", x, b.weight(channels, channels, 1, 1))
    x = b.op("Reshape", x, b.constant([1, 3, channels // 3, 36], np.int64))
    x = b.op("Transpose", x, perm=[0, 2, 1, 3])
    x = b.op("Reshape", x, b.constant([1, channels, 6, 6], np.int64))
    first = b.op("Slice", x, b.constant([0], np.int64), b.constant([5], np.int64), b.constant([1], np.int64))
    rest = b.op("Slice", x, b.constant([5], np.int64), b.constant([99], np.int64), b.constant([1], np.int64))
    x = b.op("Concat", rest, b.op("Identity", first), axis=1)
    x = b.op("Unsqueeze", b.op("Squeeze", x, b.constant([0], np.int64)), b.constant([0], np.int64))
    x = b.op("Mul", x, b.op("Add", b.constant(1.25), b.constant(0.25)))
    return b.model({"x": [1, channels, 6, 6]}, x, [1, channels, 6, 6])


def upsampled(channels=16):
    """Two scales of a detector: pools, nearest neighbours, a join, and sigmoids."""
    b = Build(8)
    x = b.op("Relu", b.op("Conv", "x", b.weight(channels, 3, 3, 3), b.weight(channels), pads=[1] * 4))
    small = b.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    small = b.op("Relu", b.op("Conv", small, b.weight(channels, channels, 1, 1), b.weight(channels)))
    large = b.op("Resize", small, "", b.constant([1, 1, 2, 2]), mode="nearest",
                 coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = b.op("Concat", x, large, axis=1)
    x = b.op("Sigmoid", b.op("Conv", x, b.weight(5, 2 * channels, 3, 3), b.weight(5), pads=[1] * 4))
    return b.model({"x": [1, 3, 10, 10]}, x, [1, 5, 10, 10])


def windows(size=8, window=4, width=12, heads=3):
    """Attention in windows, as Swin has it."""
    b = Build(9)
    n, each = size // window, width // heads
    x = b.op("Reshape", "x", b.constant([1, n, window, n, window, width], np.int64))
    x = b.op("Transpose", x, perm=[0, 1, 3, 2, 4, 5])
    x = b.op("Reshape", x, b.constant([n * n, window * window, width], np.int64))
    three = b.op("Add", b.op("MatMul", x, b.weight(width, 3 * width)), b.weight(3 * width))
    three = b.op("Reshape", three, b.constant([n * n, window * window, 3, heads, each], np.int64))
    three = b.op("Transpose", three, perm=[2, 0, 3, 1, 4])
    q, k, v = (b.op("Gather", three, b.constant(i, np.int64), axis=0) for i in range(3))
    scores = b.op("MatMul", b.op("Mul", q, b.constant(each**-0.5)), b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Add", scores, b.weight(1, heads, window * window, window * window))
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.constant([n * n, window * window, width], np.int64))
    y = b.op("Reshape", y, b.constant([1, n, n, window, window, width], np.int64))
    y = b.op("Reshape", b.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), b.constant([1, size, size, width], np.int64))
    return b.model({"x": [1, size, size, width]}, y, [1, size, size, width])


def quantised(channels=18):
    """Convolutions and a product between QuantizeLinear and DequantizeLinear."""
    b = Build(10)
    zero = b.constant(0, np.int8)

    def steps(x, scale):
        of = b.constant(scale)
        return b.op("DequantizeLinear", b.op("QuantizeLinear", x, of, zero), of, zero)

    def weights(*shape):
        w = b.constant(b.random.integers(-60, 60, shape), np.int8)
        return b.op("DequantizeLinear", w, b.constant(0.02), zero)

    x = steps("x", 0.03)
    x = b.op("Relu", b.op("Conv", x, weights(channels, 3, 3, 3), pads=[1] * 4))
    x = steps(x, 0.1)
    x = steps(b.op("Conv", x, weights(channels, channels, 1, 1)), 0.2)
    x = b.op("Reshape", b.op("GlobalAveragePool", x), b.constant([1, channels], np.int64))
    x = b.op("MatMul", x, weights(channels, 10))
    return b.model({"x": [1, 3, 8, 8]}, x, [1, 10])


def decoder(words=9, width=24, heads=4):
    """A layer of a decoder with a causal mask, rotations and a norm by the root of squares."""
    b = Build(11)
    each = width // heads

    def normed(x):
        axes = b.constant([-1], np.int64)
        square = b.op("ReduceMean", b.op("Mul", x, x), axes, keepdims=1)
        part = b.op("Div", b.constant(1.0), b.op("Sqrt", b.op("Add", square, b.constant(1e-6))))
        return b.op("Mul", b.op("Mul", x, part), b.weight(width))

    def parts(x):
        x = b.op("Reshape", x, b.constant([1, words, heads, each], np.int64))
        return b.op("Transpose", x, perm=[0, 2, 1, 3])

    def turned(x, cos, sin):
        halves = b.constant([each // 2, each // 2], np.int64)
        names = [f"{x}_first", f"{x}_second"]
        b.nodes.append(helper.make_node("Split", [x, halves], names, axis=-1))
        other = b.op("Concat", b.op("Neg", names[1]), names[0], axis=-1)
        return b.op("Add", b.op("Mul", x, cos), b.op("Mul", other, sin))

    angle = np.arange(words)[:, None] / 10 ** (np.arange(each) % (each // 2) / each)
    cos, sin = b.constant(np.cos(angle)), b.constant(np.sin(angle))
    start = normed("x")
    q, k, v = (parts(b.op("MatMul", start, b.weight(width, width))) for _ in range(3))
    scores = b.op("MatMul", turned(q, cos, sin), b.op("Transpose", turned(k, cos, sin), perm=[0, 1, 3, 2]))
    scores = b.op("Mul", scores, b.constant(each**-0.5))
    scores = b.op("Add", scores, b.constant(np.triu(np.full((words, words), -1e9), 1)))
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.constant([1, words, width], np.int64))
    x = b.op("Add", "x", b.op("MatMul", y, b.weight(width, width)))
    start = normed(x)
    gate = b.op("MatMul", start, b.weight(width, 31))
    gate = b.op("Mul", gate, b.op("Sigmoid", gate))
    y = b.op("MatMul", b.op("Mul", gate, b.op("MatMul", start, b.weight(width, 31))), b.weight(31, width))
    x = b.op("Add", x, y)
    return b.model({"x": [1, words, width]}, x, [1, words, width], 18)


def layer_scale(channels=14, size=9):
    """Blocks of ConvNeXt: wide depthwise convolutions, norms of the last axis, and a scale by channel behind products."""
    b = Build(13)
    x = b.op("Conv", "x", b.weight(channels, 3, 2, 2), b.weight(channels), strides=[2, 2], kernel_shape=[2, 2])
    for _ in range(2):
        y = b.op("Conv", x, b.weight(channels, 1, 5, 5), b.weight(channels), pads=[2] * 4, group=channels, kernel_shape=[5, 5])
        y = b.op("Transpose", y, perm=[0, 2, 3, 1])
        y = b.op("LayerNormalization", y, b.weight(channels), b.weight(channels), axis=-1, epsilon=1e-6)
        y = b.op("Add", b.op("MatMul", y, b.weight(channels, 3 * channels)), b.weight(3 * channels))
        part = b.op("Add", b.op("Erf", b.op("Div", y, b.constant(2**0.5))), b.constant(1.0))
        y = b.op("Mul", b.op("Mul", y, part), b.constant(0.5))
        y = b.op("Add", b.op("MatMul", y, b.weight(3 * channels, channels)), b.weight(channels))
        y = b.op("Mul", b.weight(channels), y)
        x = b.op("Add", x, b.op("Transpose", y, perm=[0, 3, 1, 2]))
    x = b.op("Clip", x, b.constant(-1.5), b.constant(2.0))
    x = b.op("Conv", x, b.weight(5, channels, 3, 3), pads=[2] * 4, dilations=[2, 2], kernel_shape=[3, 3])
    x = b.op("MaxPool", b.op("LeakyRelu", x, alpha=0.1), kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    return b.model({"x": [1, 3, 2 * size, 2 * size]}, x, [1, 5, size, size])


def relative(words=10, width=16, heads=2):
    """Attention with a bias by distance, of which one part is looked up by content, and a mask; two heads of results."""
    b = Build(14)
    each = width // heads
    whole = [1, words, width]

    def linear(x, n, m):
        return b.op("Add", b.op("MatMul", x, b.weight(n, m, scale=n**-0.5)), b.weight(m))

    def parts(x, perm):
        return b.op("Transpose", b.op("Reshape", x, b.constant([1, words, heads, each], np.int64)), perm=perm)

    q, k, v = (parts(linear("x", width, width), perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = b.op("Div", b.op("MatMul", q, k), b.constant((2 * each) ** 0.5))
    distance = np.clip(np.arange(words)[:, None] - np.arange(words)[None], -3, 3) + 3
    table = b.op("Gather", b.weight(7, heads), b.constant(distance, np.int64), axis=0)
    scores = b.op("Add", scores, b.op("Unsqueeze", b.op("Transpose", table, perm=[2, 0, 1]), b.constant([0], np.int64)))
    content = b.op("MatMul", q, b.weight(each, 7))
    places = b.constant(np.broadcast_to(distance, (1, heads, words, words)), np.int64)
    scores = b.op("Add", scores, b.op("GatherElements", content, places, axis=3))
    allowed = b.constant(np.tril(np.ones((1, 1, words, words))), bool)
    scores = b.op("Where", allowed, scores, b.constant(-1e4))
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.constant(whole, np.int64))
    y = b.op("Add", b.op("Mul", linear(y, width, width), b.weight(width)), "x")
    y = b.op("LayerNormalization", y, b.weight(width), b.weight(width), axis=-1, epsilon=1e-5)
    gate, inner = b.op("Sigmoid", linear(y, width, 11)), b.op("Tanh", linear(y, width, 11))
    y = linear(b.op("Sub", b.op("Mul", gate, inner), b.op("ReduceMean", inner, axes=[1], keepdims=1)), 11, 4)
    return b.model({"x": whole}, b.op("Concat", y, b.op("Neg", y), axis=2), [1, words, 8])


def open_rows():
    """A perceptron of any number of rows, with sizes that the model computes."""
    b = Build(12)
    x = b.op("Relu", b.op("Add", b.op("MatMul", "x", b.weight(15, 22)), b.weight(22)))
    rows = b.op("Gather", b.op("Shape", "x"), b.constant(0, np.int64), axis=0)
    shape = b.op("Concat", b.op("Unsqueeze", rows, b.constant([0], np.int64)), b.constant([2, 11], np.int64), axis=0)
    x = b.op("Transpose", b.op("Reshape", x, shape), perm=[0, 2, 1])
    x = b.op("MatMul", x, b.weight(2, 3))
    return b.model({"x": ["n", 15]}, x, ["n", 11, 3])


MODELS = {
    "chain": chain,
    "bert": bert,
    "block": block,
    "norms": norms,
    "residual": residual,
    "scaled": scaled,
    "perceptron": perceptron,
    "quick_gelu": quick_gelu,
    "moved": moved,
    "upsampled": upsampled,
    "windows": windows,
    "quantised": quantised,
    "decoder": decoder,
    "layer_scale": layer_scale,
    "relative": relative,
    "open_rows": open_rows,
}
