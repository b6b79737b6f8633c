"""Small networks of ragged sizes, made with the onnx package; weights are random, seeds fixed.

Sizes that no vector length divides are what layouts and tiles are about: chains of convolutions and
of products, perceptrons, and layers of transformers.
"""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, shape_inference

FLOAT = TensorProto.FLOAT
MICROSOFT = "com.microsoft"


class Net:
    """A graph under construction: values are names."""

    def __init__(self, name):
        self.name, self.nodes, self.weights, self.inputs = name, [], [], []
        self.random = np.random.default_rng(sum(name.encode()))

    def input(self, name, shape, dtype=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def weight(self, *shape, scale=None):
        """A random constant; by default of a scale that keeps the size of what it multiplies."""
        scale = (1 / np.prod(shape[1:] if len(shape) == 4 else shape[:1])) ** 0.5 if scale is None else scale
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def op(self, kind, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def linear(self, x, rows, columns):
        product = self.op("MatMul", x, self.weight(rows, columns))
        return self.op("Add", product, self.weight(columns, scale=0.1))

    def model(self, result):
        output = helper.make_tensor_value_info(result, FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [output], self.weights)
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        # The shape of the result follows from the rest.
        model = shape_inference.infer_shapes(model)
        del model.graph.value_info[:]
        checker.check_model(model)
        return model


def conv_chain(channels, size, layers=4):
    net = Net(f"conv_{channels}x{size}")
    x = net.input("x", [1, channels, size, size])
    for _ in range(layers):
        weight, bias = net.weight(channels, channels, 3, 3), net.weight(channels, scale=0.1)
        x = net.op("Relu", net.op("Conv", x, weight, bias, kernel_shape=[3, 3], pads=[1] * 4))
    return net.model(x)


def channels_last(channels, size, layers=4):
    """The chain of `conv_chain` with channels last, as exporters of other frameworks write it: each convolution
    stands between two transposes."""
    net = Net(f"conv_{channels}x{size}_channels_last")
    x = net.input("x", [1, size, size, channels])
    for _ in range(layers):
        weight, bias = net.weight(channels, channels, 3, 3), net.weight(channels, scale=0.1)
        x = net.op("Transpose", x, perm=[0, 3, 1, 2])
        x = net.op("Conv", x, weight, bias, kernel_shape=[3, 3], pads=[1] * 4)
        x = net.op("Relu", net.op("Transpose", x, perm=[0, 2, 3, 1]))
    return net.model(x)


def matmul_chain(size, layers=8):
    net = Net(f"matmul_chain_{size}")
    x = net.input("x", [size, size])
    for _ in range(layers):
        x = net.op("MatMul", x, net.weight(size, size))
    return net.model(x)


def perceptron(rows, features, layers=3):
    net = Net(f"mlp_{rows}x{features}")
    x = net.input("x", [rows, features])
    for _ in range(layers):
        x = net.op("Relu", net.linear(x, features, features))
    return net.model(x)


def heads_of(net, x, rows, features, heads):
    """`[rows, features]` as `[heads, rows, features / heads]`."""
    shape = net.constant(np.array([rows, heads, features // heads], np.int64))
    return net.op("Transpose", net.op("Reshape", x, shape), perm=[1, 0, 2])


def norm(net, x, features):
    scale = net.constant(np.ones(features, np.float32))
    return net.op("LayerNormalization", x, scale, net.weight(features, scale=0.1))


def gelu(net, x):
    one, half = (net.constant(np.array(v, np.float32)) for v in (1.0, 0.5))
    root = net.constant(np.array(2.0**0.5, np.float32))
    bent = net.op("Add", net.op("Erf", net.op("Div", x, root)), one)
    return net.op("Mul", net.op("Mul", x, bent), half)


def layer(net, x, rows, features, heads, keys=0):
    """A layer of a transformer on `[rows, features]`, where -1 are rows that are open; with `keys`, one
    step of decoding that sees so many keys, its own included."""
    start = norm(net, x, features)
    query, key, value = (
        heads_of(net, net.linear(start, features, features), rows, features, heads)
        for _ in range(3)
    )
    if keys:
        shape = [heads, keys - rows, features // heads]
        key = net.op("Concat", net.input("keys", shape), key, axis=1)
        value = net.op("Concat", net.input("values", shape), value, axis=1)
    scale = net.constant(np.array((features // heads) ** -0.5, np.float32))
    scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 2, 1]))
    weights = net.op("Softmax", net.op("Mul", scores, scale), axis=-1)
    mixed = net.op("Transpose", net.op("MatMul", weights, value), perm=[1, 0, 2])
    mixed = net.op("Reshape", mixed, net.constant(np.array([rows, features], np.int64)))
    x = net.op("Add", x, net.linear(mixed, features, features))
    inner = gelu(net, net.linear(norm(net, x, features), features, 4 * features))
    return net.op("Add", x, net.linear(inner, 4 * features, features))


def transformer(rows, features, heads, keys=0):
    """A model of one layer."""
    net = Net(f"transformer_{rows}x{features}" + (f"_{keys}_keys" if keys else ""))
    x = net.input("x", [rows, features])
    return net.model(layer(net, x, rows, features, heads, keys))


def product(rows, inner, columns):
    """One product with a constant."""
    net = Net(f"matmul_{rows}x{inner}x{columns}")
    x = net.input("x", [rows, inner])
    return net.model(net.op("MatMul", x, net.weight(inner, columns)))


def convolution(channels, size, kernel=3):
    """One convolution, as many channels out as in."""
    net = Net(f"conv{kernel}x{kernel}_{channels}x{size}")
    x = net.input("x", [1, channels, size, size])
    weight = net.weight(channels, channels, kernel, kernel)
    pads = [kernel // 2] * 4
    return net.model(net.op("Conv", x, weight, kernel_shape=[kernel] * 2, pads=pads))


def packed_linear(net, x, inner, columns, level, bits=4, block=32):
    """A product with weights of a few bits in blocks, at an accuracy level of `MatMulNBits`."""
    blocks = -(-inner // block)
    weights = net.random.integers(0, 256, (columns, blocks, block * bits // 8), dtype=np.uint8)
    scales = net.random.uniform(0.001, 0.02, columns * blocks).astype(np.float32)
    sizes = {"K": inner, "N": columns, "bits": bits, "block_size": block, "accuracy_level": level}
    operands = [x, net.constant(weights), net.constant(scales)]
    return net.op("MatMulNBits", *operands, domain=MICROSOFT, **sizes)


def of_microsoft(net, outputs):
    """The model of a network with operators of ONNX Runtime; outputs with their shapes."""
    infos = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs]
    graph = helper.make_graph(net.nodes, net.name, net.inputs, infos, net.weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def packed_product(rows, inner, columns, level, bits=4, block=32):
    """One product with weights of a few bits."""
    net = Net(f"packed{bits}_{rows}x{inner}x{columns}_level_{level}")
    x = net.input("x", [rows, inner])
    y = packed_linear(net, x, inner, columns, level, bits, block)
    return of_microsoft(net, [(y, [rows, columns])])


def decoder(rows, past, layers=6, heads=14, shared=2, size=64, inner=4864, level=4):
    """A decoder with weights of 4 bits, as onnxruntime-genai's builder writes it: so many new tokens behind those of
    a cache."""
    features, all_rows = heads * size, past + rows
    net = Net(f"decoder_{rows}_after_{past}")
    x = net.input("x", [1, rows, features])
    angles = np.arange(all_rows)[:, None] / 10000 ** (np.arange(size // 2) / (size // 2))
    cos, sin = (net.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
    last = net.constant(np.array([all_rows - 1], np.int32))
    total = net.constant(np.array(all_rows, np.int32))
    outputs = []

    def normed(value):
        scale = net.constant(np.ones(features, np.float32))
        return net.op("SimplifiedLayerNormalization", value, scale, epsilon=1e-6, axis=-1)

    for at in range(layers):
        start = normed(x)
        widths = (features, shared * size, shared * size)
        projections = [packed_linear(net, start, features, width, level) for width in widths]
        cache = [net.input(f"{kind}_{at}", [1, shared, past, size]) for kind in ("keys", "values")]
        own = [f"present_{kind}_{at}" for kind in ("keys", "values")]
        outputs += [(name, [1, shared, all_rows, size]) for name in own]
        mixed = f"mixed_{at}"
        operands = [*projections, *cache, last, total, cos, sin]
        attributes = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": 1}
        node = helper.make_node(
            "GroupQueryAttention", operands, [mixed, *own], domain=MICROSOFT, **attributes
        )
        net.nodes.append(node)
        x = net.op("Add", x, packed_linear(net, mixed, features, features, level))
        start = normed(x)
        gate, up = (packed_linear(net, start, features, inner, level) for _ in range(2))
        bent = net.op("Mul", net.op("Mul", gate, net.op("Sigmoid", gate)), up)
        x = net.op("Add", x, packed_linear(net, bent, inner, features, level))
    return of_microsoft(net, [(x, [1, rows, features]), *outputs])


def networks():
    """All that `compare.py` times, in order."""
    yield from (conv_chain(*sizes) for sizes in ((65, 57), (17, 112), (129, 29), (64, 56), (37, 31)))
    yield from (channels_last(*sizes) for sizes in ((65, 57), (129, 29), (64, 56), (37, 31)))
    yield matmul_chain(127)
    yield from (perceptron(*sizes) for sizes in ((127, 509), (77, 768), (1, 1021)))
    layers = ((77, 768, 12), (197, 384, 6), (131, 330, 5), (1, 768, 12, 509))
    yield from (transformer(*sizes) for sizes in layers)
    packed = [(rows, 4096, 4096) for rows in (1, 4, 32, 512)]
    packed += [(77, 896, 4864), (1, 4099, 4001), (33, 1021, 2047)]
    yield from (packed_product(*sizes, level) for level in (4, 0) for sizes in packed)
    yield from (decoder(*sizes) for sizes in ((77, 0), (1, 508)))
