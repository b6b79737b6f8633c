"""Random models: operators that fit together, with random weights, some sizes open.

`make(seed)` gives a model and the inputs of several runs, which differ in the sizes that the model
leaves open. A value is drawn until its operator has everything that it needs, so that each model is
valid by construction; a dimension is the tuple of the sizes that it has in the runs, and an operator
that needs a number takes only dimensions that are the same in all of them.

Values stay of the order of one: weights are scaled by what they add up, and what grows goes through
a bounded function. A wrong index then changes results far more than the threshold.
"""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 19
RUNS = 3
FLOAT, INT = np.float32, np.int64


@dataclass(frozen=True)
class Value:
    """A value of the graph: its name, and for each dimension its size in each run."""

    name: str
    shape: tuple
    dtype: type = FLOAT

    @property
    def rank(self):
        return len(self.shape)


class Open(tuple):
    """A dimension that the model leaves open, or one that is computed from such."""


def fixed(dim):
    """Whether a dimension is a number in the model; an open one may have the same size by chance."""
    return not isinstance(dim, Open)


def each(function, *dims):
    """A dimension that is computed from others."""
    sizes = [int(function(*sizes)) for sizes in zip(*dims)]
    return tuple(sizes) if all(map(fixed, dims)) else Open(sizes)


def same(size):
    return (size,) * RUNS


class Unfit(Exception):
    """An operator cannot take what was drawn."""


class Graph:
    """A graph that grows node by node."""

    def __init__(self, seed):
        self.random = np.random.default_rng([162, seed])
        self.nodes, self.constants, self.inputs = [], [], []
        self.values = []
        self.quantised = False

    # What is drawn

    def flip(self, chance=0.5):
        return bool(self.random.random() < chance)

    def pick(self, items):
        items = list(items)
        if not items:
            raise Unfit
        return items[int(self.random.integers(len(items)))]

    def whole(self, low, high):
        """A number from `low` up to and with `high`."""
        return int(self.random.integers(low, high + 1))

    def value(self, *, rank=None, least=0, dtype=FLOAT):
        """A value of the graph, later ones more often."""
        fits = [
            v
            for v in self.values
            if v.dtype == dtype and v.rank >= least and (rank is None or v.rank == rank)
        ]
        if not fits:
            raise Unfit
        back = min(int(self.random.exponential(1.5)), len(fits) - 1)
        return fits[-1 - back]

    def axis(self, x, *, same_size=False):
        """An axis of a value, counted from the front or from the back."""
        return self.pick(k for k, d in enumerate(x.shape) if fixed(d) or not same_size)

    def side(self, x, axis):
        """The axis, at times as a negative number."""
        return axis - x.rank if self.flip(0.3) else axis

    # What is added

    def input(self, shape, dtype=FLOAT):
        name = f"x{len(self.inputs)}"
        self.inputs.append(Value(name, tuple(shape), dtype))
        self.values.append(self.inputs[-1])

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *shape, fan=None):
        fan = fan or int(np.prod(shape[1:])) or 1
        return self.constant((self.random.standard_normal(shape) / np.sqrt(fan)).astype(FLOAT))

    def raw(self, op, inputs, outputs=1, **attributes):
        """A node; returns the names of its results."""
        inputs = [i.name if isinstance(i, Value) else i for i in inputs]
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def alias(self, name, shape, dtype=FLOAT):
        """Lets later nodes use a result."""
        self.values.append(Value(name, tuple(shape), dtype))

    def node(self, op, inputs, shape, dtype=FLOAT, **attributes):
        """A node with one result, which later nodes may use."""
        self.alias(self.raw(op, inputs, **attributes)[0], shape, dtype)


def elements(shape):
    return each(lambda *d: np.prod(d, dtype=np.int64), *shape) if shape else same(1)


# Operators: each draws what it needs, or raises Unfit


def unary(g):
    x = g.value()
    op = g.pick(
        ["Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSigmoid", "HardSwish", "Softplus"]
        + ["Erf", "Sin", "Cos", "Abs", "Neg", "Softsign", "Selu", "Identity", "ThresholdedRelu"]
        + ["Mish", "Celu"]
    )
    g.node(op, [x], x.shape)


def guarded(g):
    """Functions that are defined for some numbers only."""
    x = g.value()
    positive = g.raw("Add", [g.raw("Abs", [x])[0], g.constant(FLOAT(0.5))])[0]
    op = g.pick(["Log", "Sqrt", "Reciprocal"])
    g.node(op, [positive], x.shape)


def absent(g):
    """Numbers that are none, compared, and replaced by others."""
    x, y = g.value(), g.value()
    shape = broadcast(g, x, y)
    root = g.raw("Sqrt", [x])[0]
    most = g.raw(g.pick(["Max", "Min", "Add", "Mul"]), [root, y])[0]
    gone = g.raw("IsNaN", [most])[0]
    g.node("Where", [gone, g.constant(FLOAT(-0.5)), most], shape)


def nothing(g):
    """A part without elements, beside all."""
    x = g.value(least=1)
    k = g.axis(x)
    none = g.raw("Slice", [x, *(g.constant(np.array([v])) for v in (1, 1, k))])[0]
    if g.flip():
        none = g.raw("Relu", [none])[0]
    parts = [none, x] if g.flip() else [x, none]
    g.node("Concat", parts, x.shape, axis=g.side(x, k))


def sequenced(g):
    """The parts of a value in a sequence, and put together again in another order."""
    x = g.value(least=1)
    k = g.axis(x, same_size=True)
    size = x.shape[k][0]
    if size < 2:
        raise Unfit
    first = g.whole(1, size - 1)
    lengths = g.constant(np.array([first, size - first]))
    parts = g.raw("SplitToSequence", [x, lengths], axis=k)[0]
    last = g.raw("SequenceAt", [parts, g.constant(np.array(-1))])[0]
    if g.flip():
        cut = g.raw("SequenceErase", [parts, g.constant(np.array(1))])[0]
        parts = g.raw("SequenceInsert", [cut, last, g.constant(np.array(0))])[0]
        last = g.raw("ConcatFromSequence", [parts], axis=k)[0]
    # What a sequence holds may have any size along the axis, which goes here.
    weighed = g.raw("CumSum", [last, g.constant(np.array(k))], reverse=g.whole(0, 1))[0]
    shape = [*x.shape[:k], same(1), *x.shape[k + 1 :]]
    g.node("ReduceMean", [weighed, g.constant(np.array([k]))], shape, keepdims=1)


def clip(g):
    x = g.value()
    low, high = g.constant(FLOAT(-0.7)), g.constant(FLOAT(1.3))
    g.node("Clip", [x, low, high][: g.whole(2, 3)], x.shape)


def broadcast(g, a, b):
    """The shape of both together, or Unfit."""
    rank = max(a.rank, b.rank)
    sides = [(same(1),) * (rank - v.rank) + v.shape for v in (a, b)]
    shape = []
    for p, q in zip(*sides):
        if p == q or q == same(1):
            shape.append(p)
        elif p == same(1):
            shape.append(q)
        else:
            raise Unfit
    return shape


def binary(g):
    a, b = g.value(), g.value()
    if g.flip(0.3):  # with numbers for an axis
        k = g.axis(a, same_size=True)
        sizes = [a.shape[k][0]] + [1] * (a.rank - 1 - k)
        shape, b = a.shape, g.constant(g.random.standard_normal(sizes).astype(FLOAT))
    else:
        shape = broadcast(g, a, b)
    op = g.pick(["Add", "Sub", "Mul", "Max", "Min", "Mean"])
    r = g.raw(op, [a, b])[0]
    g.node("Tanh", [r], shape) if op == "Mul" and g.flip() else g.alias(r, shape)


def divide(g):
    a, b = g.value(), g.value()
    shape = broadcast(g, a, b)
    below = g.raw("Add", [g.raw("Abs", [b])[0], g.constant(FLOAT(1.0))])[0]
    g.node("Div", [a, below], shape)


def choose(g):
    a, b = g.value(), g.value()
    shape = broadcast(g, a, b)
    edge = g.constant(FLOAT(g.random.standard_normal() + 0.013))
    op = g.pick(["Less", "Greater", "GreaterOrEqual", "LessOrEqual"])
    cond = g.raw(op, [a, edge])[0]
    if g.flip(0.3):
        cond = g.raw("Not", [cond])[0]
    g.node("Where", [cond, a, b], shape)


def window(g, x, *, kernel, transposed=False):
    """Strides, dilations, pads and results of a window over the spatial axes."""
    spatial = x.shape[2:]
    n = len(spatial)
    strides = [g.pick([1, 1, 1, 2, 3]) for _ in range(n)]
    dilations = [g.pick([1, 1, 1, 2]) for _ in range(n)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [g.whole(0, max(min(k - 1, r // 2), 0)) for k, r in zip(kernel * 2, reach * 2)]
    out = []
    for k in range(n):
        total = pads[k] + pads[n + k]
        if transposed:
            dim = each(lambda d: (d - 1) * strides[k] + reach[k] - total, spatial[k])
        else:
            dim = each(lambda d: (d + total - reach[k]) // strides[k] + 1, spatial[k])
            if min(each(lambda d: d + total - reach[k], spatial[k])) < 0:
                raise Unfit
        if min(dim) < 1:
            raise Unfit
        out.append(dim)
    return dict(strides=strides, dilations=dilations, pads=pads), out


def convolution(g):
    x = g.value(rank=4) if g.flip(0.8) else g.value(rank=3)
    if not fixed(x.shape[1]):
        raise Unfit
    channels = x.shape[1][0]
    kernel = [g.pick([1, 1, 3, 3, 5, 2]) for _ in x.shape[2:]]
    attributes, out = window(g, x, kernel=kernel)
    depthwise = g.flip(0.2)
    groups = channels if depthwise else g.pick(k for k in (1, 1, 1, 2, 3) if channels % k == 0)
    outer = groups * g.whole(1, 3) if groups > 1 else g.pick([1, 3, 8, 13, 16, 17, 24, 33])
    if g.flip(0.2) and all(d == 1 for d in attributes["dilations"]):
        # What pads is found from the sizes.
        attributes["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER"])
        attributes.pop("pads")
        steps = attributes["strides"]
        out = [each(lambda d: -(-d // s), dim) for dim, s in zip(x.shape[2:], steps)]
    inputs = [x, g.weights(outer, channels // groups, *kernel)]
    if g.flip(0.7):
        inputs.append(g.constant(g.random.standard_normal(outer).astype(FLOAT)))
    g.node("Conv", inputs, [x.shape[0], same(outer), *out], group=groups, **attributes)


def transposed_convolution(g):
    x = g.value(rank=4)
    if not fixed(x.shape[1]):
        raise Unfit
    channels, outer = x.shape[1][0], g.whole(1, 9)
    kernel = [g.whole(1, 4) for _ in x.shape[2:]]
    attributes, out = window(g, x, kernel=kernel, transposed=True)
    if max(np.prod(out, axis=0)) > 4000:
        raise Unfit
    w = g.weights(channels, outer, *kernel, fan=channels * 4)
    g.node("ConvTranspose", [x, w], [x.shape[0], same(outer), *out], **attributes)


def pool(g):
    x = g.value(rank=4)
    kernel = [g.whole(1, 3) for _ in x.shape[2:]]
    attributes, out = window(g, x, kernel=kernel)
    # A window of padding alone has no largest element.
    if any(p >= k for p, k in zip(attributes["pads"], kernel * 2)) or max(attributes["dilations"]) > 1:
        raise Unfit
    op = g.pick(["MaxPool", "AveragePool"])
    if op == "AveragePool":
        attributes["count_include_pad"] = g.whole(0, 1)
    g.node(op, [x], [*x.shape[:2], *out], kernel_shape=kernel, **attributes)


def wide_pool(g):
    """Windows that are larger than the image, of which the last may end outside."""
    x = g.value(rank=4)
    kernel, strides, out = [], [], []
    for dim in x.shape[2:]:
        k = g.whole(1, min(dim) + 4)
        s = g.whole(max(1, k - min(dim) + 1), k + 2)
        kernel.append(k)
        strides.append(s)
        out.append(each(lambda d: min(-(-(d - k) // s) + 1, -(-d // s)), dim))
        if min(out[-1]) < 1:
            raise Unfit
    op = g.pick(["MaxPool", "AveragePool"])
    shape = [*x.shape[:2], *out]
    g.node(op, [x], shape, kernel_shape=kernel, strides=strides, ceil_mode=1)


def global_pool(g):
    x = g.value(rank=4)
    op = g.pick(["GlobalAveragePool", "GlobalMaxPool"])
    g.node(op, [x], [*x.shape[:2], same(1), same(1)])


def batch_norm(g):
    x = g.value(least=2)
    if not fixed(x.shape[1]):
        raise Unfit
    c = x.shape[1][0]
    numbers = [g.random.standard_normal(c), g.random.standard_normal(c)]
    numbers += [g.random.standard_normal(c), g.random.random(c) + 0.5]
    g.node("BatchNormalization", [x, *(g.constant(n.astype(FLOAT)) for n in numbers)], x.shape)


def instance_norm(g):
    x = g.value(rank=4)
    if not fixed(x.shape[1]):
        raise Unfit
    c = x.shape[1][0]
    # Of a few cells only, the variance is too small to be compared.
    if min(each(lambda a, b: a * b, *x.shape[2:])) < 4:
        raise Unfit
    pair = [g.constant(g.random.standard_normal(c).astype(FLOAT)) for _ in range(2)]
    g.node("InstanceNormalization", [x, *pair], x.shape, epsilon=0.1)


def layer_norm(g):
    x = g.value(least=2)
    k = g.axis(x)
    if not all(fixed(d) for d in x.shape[k:]):
        raise Unfit
    sizes = [d[0] for d in x.shape[k:]]
    pair = [g.constant(g.random.standard_normal(sizes).astype(FLOAT)) for _ in range(g.whole(1, 2))]
    g.node("LayerNormalization", [x, *pair], x.shape, axis=g.side(x, k), epsilon=0.1)


def lrn(g):
    x = g.value(rank=4)
    g.node("LRN", [x], x.shape, size=g.pick([1, 3, 5]), alpha=0.1, beta=0.75, bias=1.5)


def softmax(g):
    x = g.value(least=1)
    g.node(g.pick(["Softmax", "LogSoftmax"]), [x], x.shape, axis=g.side(x, g.axis(x)))


def product(g):
    x = g.value(least=2)
    if not fixed(x.shape[-1]):
        raise Unfit
    n = g.pick([1, 5, 10, 16, 17, 31, 33, 64])
    w = g.weights(n, x.shape[-1][0], fan=x.shape[-1][0])
    if x.rank == 2 and g.flip():
        inputs = [x, w] + [g.constant(g.random.standard_normal(n).astype(FLOAT))] * g.whole(0, 1)
        g.node("Gemm", inputs, [x.shape[0], same(n)], transB=1, alpha=g.pick([1.0, 0.5]))
    else:
        turned = g.raw("Transpose", [w], perm=[1, 0])[0]
        g.node("MatMul", [x, turned], [*x.shape[:-1], same(n)])


def product_of_two(g):
    """A value times itself turned round, as attention does."""
    a = g.value(least=2)
    order = [*range(a.rank - 2), a.rank - 1, a.rank - 2]
    turned = g.raw("Transpose", [a], perm=order)[0]
    scale = g.constant(FLOAT(1 / max(a.shape[-1])))
    scaled = g.raw("Mul", [a, scale])[0]
    r = g.raw("MatMul", [scaled, turned])[0]
    shape = [*a.shape[:-1], a.shape[-2]]
    if g.flip():
        r = g.raw("Softmax", [r], axis=-1)[0]
        g.node("MatMul", [r, a], a.shape)
    else:
        g.node("Tanh", [r], shape)


def concat(g):
    a = g.value(least=1)
    k = g.axis(a)
    fits = [v for v in g.values if v.dtype == FLOAT and v.rank == a.rank]
    fits = [v for v in fits if all(i == k or v.shape[i] == a.shape[i] for i in range(a.rank))]
    parts = [a] + [g.pick(fits) for _ in range(g.whole(1, 2))]
    dim = each(lambda *d: sum(d), *(p.shape[k] for p in parts))
    if max(dim) > 200:
        raise Unfit
    shape = [*a.shape[:k], dim, *a.shape[k + 1 :]]
    g.node("Concat", parts, shape, axis=g.side(a, k))


def split(g):
    x = g.value(least=1)
    k = g.axis(x, same_size=True)
    size = x.shape[k][0]
    if size < 2:
        raise Unfit
    first = g.whole(1, size - 1)
    names = g.raw("Split", [x, g.constant(np.array([first, size - first]))], 2, axis=g.side(x, k))
    for name, part in zip(names, (first, size - first)):
        g.alias(name, [*x.shape[:k], same(part), *x.shape[k + 1 :]])


def cut(g):
    x = g.value(least=1)
    k = g.axis(x)
    size = min(x.shape[k])
    step = g.pick([1, 1, 2, 3, -1, -2])
    if step > 0:
        start = g.whole(0, size - 1)
        end = g.pick([2**40, -g.whole(0, 2) or 2**40])
        low = each(lambda d: min(start, d), x.shape[k])
        high = each(lambda d: min(end, d) if end >= 0 else d + end, x.shape[k])
    else:
        start, end = g.pick([-1, -2, 2**40]), -(2**40)
        high = each(lambda d: d if start > 0 else d + start + 1, x.shape[k])
        low = same(0)
    dim = each(lambda a, b: -(-(b - a) // abs(step)), low, high)
    if min(dim) < 1:
        raise Unfit
    names = [g.constant(np.array([v])) for v in (start, end, g.side(x, k), step)]
    g.node("Slice", [x, *names], [*x.shape[:k], dim, *x.shape[k + 1 :]])


def pad(g):
    x = g.value(least=1)
    mode = g.pick(["constant", "constant", "edge", "reflect", "wrap"])
    least = [min(d) for d in x.shape]
    widest = [2 if mode in ("constant", "edge") else min(2, n - 1) for n in least]
    before, after = ([g.whole(0, w) for w in widest] for _ in range(2))
    inputs = [x, g.constant(np.array(before + after))]
    if mode == "constant" and g.flip():
        inputs.append(g.constant(FLOAT(0.25)))
    shape = [each(lambda d: d + a + b, dim) for dim, a, b in zip(x.shape, before, after)]
    g.node("Pad", inputs, shape, mode=mode)


def transpose(g):
    x = g.value(least=2)
    order = [int(k) for k in g.random.permutation(x.rank)]
    g.node("Transpose", [x], [x.shape[k] for k in order], perm=order)


def reshape(g):
    x = g.value(least=1)
    if g.flip(0.3) and x.rank < 5:
        k = g.whole(0, x.rank)
        shape = [*x.shape[:k], same(1), *x.shape[k:]]
        return g.node("Unsqueeze", [x, g.constant(np.array([k]))], shape)
    if g.flip(0.3):
        k = g.pick(k for k, d in enumerate(x.shape) if d == same(1))
        shape = [*x.shape[:k], *x.shape[k + 1 :]]
        return g.node("Squeeze", [x, g.constant(np.array([k]))], shape)
    if g.flip(0.3):
        k = g.whole(0, x.rank)
        shape = [elements(x.shape[:k]), elements(x.shape[k:])]
        return g.node("Flatten", [x], shape, axis=k)
    if x.rank < 2:
        raise Unfit
    # Two neighbours become one.
    k = g.whole(0, x.rank - 2)
    target, rest = [0] * k + [-1], x.shape[k + 2 :]
    if not all(fixed(d) for d in rest):
        raise Unfit
    target += [d[0] for d in rest]
    shape = [*x.shape[:k], elements(x.shape[k : k + 2]), *rest]
    return g.node("Reshape", [x, g.constant(np.array(target))], shape)


def split_axis(g):
    """One axis becomes two."""
    x = g.value(least=1)
    k = g.axis(x, same_size=True)
    size = x.shape[k][0]
    part = g.pick(n for n in (2, 3, 4, 8) if size % n == 0)
    if x.rank > 4 or not all(fixed(d) for d in x.shape[k + 1 :]):
        raise Unfit
    target = [0] * k + [part, size // part] + [d[0] for d in x.shape[k + 1 :]]
    shape = [*x.shape[:k], same(part), same(size // part), *x.shape[k + 1 :]]
    g.node("Reshape", [x, g.constant(np.array(target))], shape)


def computed_shape(g):
    """A shape that the model computes from that of a value."""
    x = g.value(least=2)
    whole = g.raw("Shape", [x])[0]
    first = g.raw("Gather", [whole, g.constant(np.array([0]))])[0]
    rest = g.constant(np.array([-1]))
    target = g.raw("Concat", [first, rest], axis=0)[0]
    g.node("Reshape", [x, target], [x.shape[0], elements(x.shape[1:])])


def reduce(g):
    x = g.value(least=1)
    count = g.whole(1, x.rank)
    axes = sorted(int(k) for k in g.random.choice(x.rank, count, replace=False))
    keep = g.whole(0, 1)
    shape = [same(1) if k in axes else d for k, d in enumerate(x.shape) if keep or k not in axes]
    op = g.pick(["ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSum"])
    axes = [g.side(x, k) for k in axes]
    r = g.raw(op, [x, g.constant(np.array(axes))], keepdims=keep)[0]
    g.node("Tanh", [r], shape) if op in ("ReduceSum", "ReduceL2") else g.alias(r, shape)


def resize(g):
    x = g.value(rank=4)
    factor = g.pick([2, 3])
    mode, way = g.pick([("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners")])
    if max(np.prod(x.shape[2:], axis=0)) > 400:
        raise Unfit
    scales = g.constant(np.array([1, 1, factor, factor], FLOAT))
    more = {"nearest_mode": "floor"} if mode == "nearest" else {}
    shape = [*x.shape[:2], *(each(lambda d: d * factor, dim) for dim in x.shape[2:])]
    attributes = dict(mode=mode, coordinate_transformation_mode=way, **more)
    g.node("Resize", [x, "", scales], shape, **attributes)


def resize_by_a_fraction(g):
    """Nearest neighbours by a scale that is no binary fraction; decided in `float32`."""
    x = g.value(rank=4)
    if not all(map(fixed, x.shape[2:])):
        raise Unfit
    scale = g.pick([0.6, 0.7, 1.2, 1.3, 1.7])
    out = [int(FLOAT(d[0]) * FLOAT(scale)) for d in x.shape[2:]]
    if 0 in out or out == [d[0] for d in x.shape[2:]]:
        raise Unfit
    scales = g.constant(np.array([1, 1, scale, scale], FLOAT))
    ways = ["asymmetric", "half_pixel", "pytorch_half_pixel"]
    nearest = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
    g.node(
        "Resize",
        [x, "", scales],
        [*x.shape[:2], *map(same, out)],
        mode="nearest",
        coordinate_transformation_mode=g.pick(ways),
        nearest_mode=g.pick(nearest),
    )


def blocks(g):
    x = g.value(rank=4)
    n, c, h, w = x.shape
    if g.flip():
        if not fixed(c) or c[0] % 4:
            raise Unfit
        shape = [n, same(c[0] // 4), each(lambda d: 2 * d, h), each(lambda d: 2 * d, w)]
        g.node("DepthToSpace", [x], shape, blocksize=2, mode=g.pick(["DCR", "CRD"]))
    else:
        if any(size % 2 for size in h + w):
            raise Unfit
        shape = [n, each(lambda d: 4 * d, c), each(lambda d: d // 2, h), each(lambda d: d // 2, w)]
        g.node("SpaceToDepth", [x], shape, blocksize=2)


def gather(g):
    x = g.value(least=1)
    k = g.axis(x)
    size = min(x.shape[k])
    indices = g.random.integers(-size, size, g.pick([(), (3,), (2, 2)]))
    inner = [same(d) for d in indices.shape]
    shape = [*x.shape[:k], *inner, *x.shape[k + 1 :]]
    if len(shape) > 5:
        raise Unfit
    g.node("Gather", [x, g.constant(indices)], shape, axis=g.side(x, k))


def tile(g):
    x = g.value(least=1)
    counts = [g.pick([1, 1, 2]) for _ in x.shape]
    shape = [each(lambda d: d * n, dim) for dim, n in zip(x.shape, counts)]
    if max(elements(shape)) > 20000:
        raise Unfit
    g.node("Tile", [x, g.constant(np.array(counts))], shape)


def expand(g):
    x = g.value(least=1)
    shape = [same(3) if d == same(1) else d for d in x.shape]
    target = [3 if d == same(1) else 1 for d in x.shape]
    g.node("Expand", [x, g.constant(np.array(target))], shape)


def cumulative(g):
    x = g.value(least=1)
    k = g.axis(x)
    attributes = dict(exclusive=g.whole(0, 1), reverse=g.whole(0, 1))
    r = g.raw("CumSum", [x, g.constant(INT(k))], **attributes)[0]
    g.node("Tanh", [r], x.shape)


def recurrent(g):
    x = g.value(rank=3)
    if not fixed(x.shape[2]) or max(x.shape[0]) > 12:
        raise Unfit
    size, hidden, ways = x.shape[2][0], g.pick([3, 8, 11]), g.whole(1, 2)
    op, gates = g.pick([("RNN", 1), ("GRU", 3), ("LSTM", 4)])
    w = g.weights(ways, gates * hidden, size, fan=size)
    r = g.weights(ways, gates * hidden, hidden, fan=hidden)
    b = g.weights(ways, 2 * gates * hidden, fan=16)
    way = "bidirectional" if ways == 2 else g.pick(["forward", "reverse"])
    y = g.raw(op, [x, w, r, b], hidden_size=hidden, direction=way)[0]
    turned = g.raw("Transpose", [y], perm=[0, 2, 1, 3])[0]
    target = g.constant(np.array([0, 0, ways * hidden]))
    g.node("Reshape", [turned, target], [*x.shape[:2], same(ways * hidden)])


def branch(g):
    """An If whose branches see what is around them."""
    x = g.value()
    mean = g.raw("ReduceMean", [x], keepdims=0)[0]
    cond = g.raw("Greater", [mean, g.constant(FLOAT(0.01))])[0]
    name = f"v{len(g.nodes)}"
    parts = []
    for k, op in enumerate(("Tanh", "Neg")):
        inner = helper.make_node(op, [x.name], [f"{name}_b{k}"])
        out = helper.make_tensor_value_info(f"{name}_b{k}", TensorProto.FLOAT, None)
        parts.append(helper.make_graph([inner], f"{name}_g{k}", [], [out]))
    g.node("If", [cond], x.shape, then_branch=parts[0], else_branch=parts[1])


def repeated(g):
    """A Loop that carries a value and stacks what it makes."""
    x = g.value()
    trip, name = g.whole(1, 4), f"l{len(g.nodes)}"
    w = g.constant(FLOAT(0.9))
    first = helper.make_tensor_value_info(f"{name}_x", TensorProto.FLOAT, None)
    count = helper.make_tensor_value_info(f"{name}_i", TensorProto.INT64, [])
    go = helper.make_tensor_value_info(f"{name}_c", TensorProto.BOOL, [])
    nodes = [
        helper.make_node("Identity", [f"{name}_c"], [f"{name}_d"]),
        helper.make_node("Mul", [f"{name}_x", w], [f"{name}_m"]),
        helper.make_node("Sin", [f"{name}_m"], [f"{name}_y"]),
        helper.make_node("Neg", [f"{name}_y"], [f"{name}_s"]),
    ]
    body = helper.make_graph(
        nodes,
        name,
        [count, go, first],
        [
            helper.make_tensor_value_info(f"{name}_d", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None),
            helper.make_tensor_value_info(f"{name}_s", TensorProto.FLOAT, None),
        ],
    )
    last, stacked = g.raw("Loop", [g.constant(INT(trip)), "", x], 2, body=body)
    g.alias(last, x.shape)
    if x.rank < 5:
        g.alias(stacked, [same(trip), *x.shape])


def scanned(g):
    """A Scan over the first axis: a running sum."""
    x = g.value(least=2)
    name = f"s{len(g.nodes)}"
    start = g.raw("ReduceMean", [x, g.constant(np.array([0]))], keepdims=0)[0]
    nodes = [
        helper.make_node("Add", [f"{name}_a", f"{name}_x"], [f"{name}_t"]),
        helper.make_node("Tanh", [f"{name}_t"], [f"{name}_b"]),
        helper.make_node("Identity", [f"{name}_b"], [f"{name}_y"]),
    ]
    ends = [f"{name}_{k}" for k in "axby"]
    # Without numbers: what ONNX infers of pools that are rounded up is not what they give.
    row = [None for _ in x.shape[1:]]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, row) for n in ends]
    body = helper.make_graph(nodes, name, infos[:2], infos[2:])
    last, rows = g.raw("Scan", [start, x], 2, body=body, num_scan_inputs=1)
    g.alias(last, x.shape[1:])
    g.alias(rows, x.shape)


def selected(g):
    """Elements that data select, whose number nobody knows before; then their mean."""
    x = g.value(least=1)
    edge = g.constant(FLOAT(g.random.standard_normal() * 0.3))
    cond = g.raw("Greater", [x, edge])[0]
    if g.flip():
        line = g.constant(np.array([-1]))
        flat = [g.raw("Reshape", [v, line])[0] for v in (x, cond)]
        found = g.raw("Compress", flat)[0]
    else:
        places = g.raw("NonZero", [cond])[0]
        found = g.raw("GatherND", [x, g.raw("Transpose", [places], perm=[1, 0])[0]])[0]
    # One more, so that there is always something to add up.
    some = g.raw("Concat", [found, g.constant(np.ones(1, FLOAT))], axis=0)[0]
    g.node("ReduceMean", [some], [], keepdims=0)


def best(g):
    x = g.value(least=1)
    k = g.axis(x)
    count = g.whole(1, min(x.shape[k]))
    names = g.raw("TopK", [x, g.constant(np.array([count]))], 2, axis=g.side(x, k))
    g.alias(names[0], [*x.shape[:k], same(count), *x.shape[k + 1 :]])


def einsum(g):
    a = g.value(rank=3)
    scale = g.constant(FLOAT(1 / max(a.shape[2])))
    r = g.raw("Mul", [a, scale])[0]
    equation, shape = g.pick(
        [
            ("bij,bkj->bik", [a.shape[0], a.shape[1], a.shape[1]]),
            ("bij,bij->bi", a.shape[:2]),
            ("bij,cij->bci", [a.shape[0], a.shape[0], a.shape[1]]),
        ]
    )
    g.node("Einsum", [r, a], shape, equation=equation)


def whole_numbers(g):
    """Arithmetic of integers, and its result as floats."""
    x = g.value(dtype=INT)
    by = g.constant(INT(g.pick([2, 3, -3, 7])))
    op = g.pick(["Add", "Mul", "Sub", "Div", "Mod", "Max", "Min"])
    r = g.raw(op, [x, by])[0]
    bounded = g.raw("Mod", [r, g.constant(INT(5))], fmod=1)[0]
    g.alias(bounded, x.shape, INT)
    g.node("Cast", [bounded], x.shape, to=TensorProto.FLOAT)


def looked_up(g):
    """Rows that an integer input names."""
    x, at = g.value(least=1), g.pick(v for v in g.inputs if v.dtype == INT)
    k = g.pick(k for k, d in enumerate(x.shape) if min(d) >= 4)
    shape = [*x.shape[:k], *at.shape, *x.shape[k + 1 :]]
    if len(shape) > 5:
        raise Unfit
    g.node("Gather", [x, at], shape, axis=k)


def on_a_grid(g):
    x = g.value(rank=4)
    if x.shape[1] != same(2) and not fixed(x.shape[1]):
        raise Unfit
    pairs = g.raw("Slice", [x, *(g.constant(np.array([v])) for v in (0, 1, 1))])[0]
    both = g.raw("Concat", [pairs, g.raw("Neg", [pairs])[0]], axis=1)[0]
    grid = g.raw("Transpose", [g.raw("Tanh", [both])[0]], perm=[0, 2, 3, 1])[0]
    modes, beyond = ["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"]
    how = dict(mode=g.pick(modes), padding_mode=g.pick(beyond))
    g.node("GridSample", [x, grid], x.shape, align_corners=g.whole(0, 1), **how)


def quantised(g):
    """A value as 8-bit integers and back."""
    x = g.value()
    g.alias(pair(g, x.name), x.shape)


def pair(g, name, scale=None):
    """QuantizeLinear and DequantizeLinear."""
    g.quantised = True
    zero = g.random.integers(-20, 20, (), np.int8) if g.flip() else np.uint8(g.whole(108, 148))
    scale = scale or g.constant(FLOAT(g.random.uniform(0.015, 0.03)))
    zero = g.constant(zero)
    q = g.raw("QuantizeLinear", [name, scale, zero])[0]
    return g.raw("DequantizeLinear", [q, scale, zero])[0]


def constant_pair(g, shape, fan, per_channel):
    """Weights as 8-bit integers, and a DequantizeLinear."""
    q = g.constant(g.random.integers(-64, 64, shape, np.int8))
    unit = 1 / (37 * np.sqrt(fan))
    if per_channel:
        scales = (unit * g.random.uniform(0.7, 1.3, shape[0])).astype(FLOAT)
        zero = g.constant(np.zeros(shape[0], np.int8))
        return g.raw("DequantizeLinear", [q, g.constant(scales), zero], axis=0)[0]
    return g.raw("DequantizeLinear", [q, g.constant(FLOAT(unit)), g.constant(np.int8(0))])[0]


def quantised_convolution(g):
    x = g.value(rank=4)
    if not fixed(x.shape[1]):
        raise Unfit
    channels, outer = x.shape[1][0], g.pick([3, 8, 16, 17])
    kernel = [g.pick([1, 3]), g.pick([1, 3])]
    attributes, out = window(g, x, kernel=kernel)
    w = constant_pair(g, (outer, channels, *kernel), channels * kernel[0] * kernel[1], g.flip())
    y = g.raw("Conv", [pair(g, x.name), w], **attributes)[0]
    if g.flip():
        y = g.raw("Relu", [y])[0]
    g.alias(pair(g, y), [x.shape[0], same(outer), *out])


def quantised_product(g):
    x = g.value(least=2)
    if not fixed(x.shape[-1]):
        raise Unfit
    k, n = x.shape[-1][0], g.pick([5, 16, 33])
    w = g.raw("Transpose", [constant_pair(g, (n, k), k, g.flip())], perm=[1, 0])[0]
    y = g.raw("MatMul", [pair(g, x.name), w])[0]
    g.alias(pair(g, y) if g.flip() else y, [*x.shape[:-1], same(n)])


PLAIN = [unary, guarded, clip, binary, binary, divide, choose, convolution, convolution, convolution]
PLAIN += [transposed_convolution, pool, global_pool, batch_norm, instance_norm, layer_norm, lrn]
PLAIN += [softmax, product, product, product_of_two, concat, concat, split, cut, pad, transpose]
PLAIN += [transpose, reshape, reshape, split_axis, computed_shape, reduce, resize, blocks, gather]
PLAIN += [resize_by_a_fraction]
PLAIN += [tile, expand, cumulative, recurrent, branch, repeated, scanned, selected, best, einsum]
PLAIN += [whole_numbers, looked_up, on_a_grid, on_a_grid, wide_pool, absent, nothing, sequenced]
QUANTISED = [quantised, quantised_convolution, quantised_convolution, quantised_product]
MOST = 30000  # elements of a value


@dataclass
class Case:
    """A model, and the inputs of each run."""

    seed: int
    model: onnx.ModelProto
    runs: list
    quantised: bool


def make(seed):
    """The model of a seed, the same each time."""
    g = Graph(seed)
    open_sizes = g.flip(0.5)

    def size(*sizes):
        one = g.pick(sizes)
        return Open(one + 2 * k for k in range(RUNS)) if open_sizes and g.flip() else same(one)

    if g.flip(0.65):
        g.input([size(1, 1, 2), same(g.pick([1, 3, 4, 8, 17])), size(7, 8, 12, 14), size(5, 8, 13)])
    else:
        g.input([size(1, 2, 7), size(1, 3), same(g.pick([4, 8, 13, 32]))])
    if g.flip(0.4):
        g.input(g.inputs[0].shape)
    if g.flip(0.3):
        g.input([g.pick([size(1, 3), same(2)])], INT)
    operators = PLAIN + (QUANTISED * 6 if g.flip(0.25) else [])
    for _ in range(g.whole(3, 12)):
        for _ in range(30):
            nodes, constants, values = len(g.nodes), len(g.constants), len(g.values)
            try:
                g.pick(operators)(g)
                if all(max(elements(v.shape)) <= MOST and v.rank <= 5 for v in g.values):
                    break
            except Unfit:
                pass
            del g.nodes[nodes:], g.constants[constants:], g.values[values:]
    return Case(seed, model(g), [inputs(g, k) for k in range(RUNS if open_sizes else 1)], g.quantised)


def model(g):
    """The graph as a model: what nothing reads is a result, and so is the last value."""
    read = {name for node in g.nodes for name in node.input}
    for node in g.nodes:
        for a in node.attribute:
            read |= {n for inner in a.g.node for n in inner.input}
    results = [v for v in g.values if v.name not in read and v not in g.inputs] or g.values[-1:]
    names = {}

    def info(v, name=lambda d: names.setdefault(d, f"n{len(names)}")):
        dims = [d[0] if fixed(d) else name(d) for d in v.shape]
        kind = TensorProto.INT64 if v.dtype == INT else TensorProto.FLOAT
        return helper.make_tensor_value_info(v.name, kind, dims)

    graph = helper.make_graph(
        g.nodes,
        "random",
        [info(v) for v in g.inputs],
        [info(v, lambda d: None) for v in results],
        g.constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(made)
    return made


def inputs(g, run):
    made = {}
    for v in g.inputs:
        shape = [d[run] for d in v.shape]
        numbers = g.random.standard_normal(shape).astype(FLOAT)
        made[v.name] = g.random.integers(0, 4, shape) if v.dtype == INT else numbers
    return made
