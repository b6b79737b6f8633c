"""Random models whose sizes are computed as exporters write it: floors, sums, tables, two names for one size.

`make(seed)` gives a model with open sizes, the inputs of `graphs.RUNS` runs, and in some models ranges that
hold in all of them. A batch may have no element. Each step takes a value of the
graph and does with its sizes what exports do: halves it and says the size in one division, pads it to a
multiple and cuts it into windows, cuts a table to it, joins what one mask selects, keeps a sum beside `-1`.
What the sizes are in each run is known here, so that every model is valid at all of them.
"""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper

import graphs
from graphs import FLOAT, INT, Open, Unfit, each, elements, fixed, same

MOST = 20000  # elements of a value


class Sizes(graphs.Graph):
    """A graph with the operators that shapes are computed with."""

    def ints(self, *numbers):
        return self.constant(np.array(numbers, INT))

    def size(self, x, axis):
        """The size of an axis as a list of one number."""
        name = x if isinstance(x, str) else x.name
        if self.flip():
            return self.raw("Shape", [name], start=axis, end=axis + 1)[0]
        whole = self.raw("Shape", [name])[0]
        if self.flip():
            return self.raw("Gather", [whole, self.ints(axis)])[0]
        ends = [self.ints(axis), self.ints(axis + 1), self.ints(0)]
        return self.raw("Slice", [whole, *ends])[0]

    def number(self, op, a, b):
        b = self.ints(b) if isinstance(b, int) else b
        a = self.ints(a) if isinstance(a, int) else a
        return self.raw(op, [a, b])[0]

    def joined(self, *parts):
        parts = [self.ints(p) if isinstance(p, int) else p for p in parts]
        return self.raw("Concat", parts, axis=0)[0]

    def slice(self, x, axis, start, end):
        start, end = (self.ints(v) if isinstance(v, int) else v for v in (start, end))
        return self.raw("Slice", [x, start, end, self.ints(axis)])[0]

    def pads(self, rank, axis, before, after):
        """The amounts of Pad for one axis."""
        parts = [0] * (2 * rank)
        parts[axis], parts[rank + axis] = before, after
        return self.joined(*parts)


def replaced(shape, axis, *dims):
    return [*shape[:axis], *dims, *shape[axis + 1 :]]


def halvings(g):
    """Strides of two, and the size in one division."""
    x = g.value(rank=3)
    count, dim = g.whole(1, 4), x.shape[2]
    y = x.name
    for _ in range(count):
        y = g.raw("MaxPool", [y], kernel_shape=[3], strides=[2], pads=[1, 1])[0]
        dim = each(lambda d: (d + 1) // 2, dim)
    last = g.number("Div", g.number("Add", g.size(x, 2), 2**count - 1), 2**count)
    target = g.joined(g.size(x, 0), -1, last) if g.flip() else g.joined(-1, g.size(x, 1), last)
    y = g.raw("Reshape", [y, target])[0]
    g.alias(y, [x.shape[0], x.shape[1], dim])


def odd(g):
    """Halved, doubled, and padded by what is missing."""
    x = g.value(rank=3)
    if min(x.shape[2]) < 4:
        raise Unfit
    y = g.raw("MaxPool", [x], kernel_shape=[2], strides=[2])[0]
    scales = g.constant(np.array([1, 1, 2], FLOAT))
    how = dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    y = g.raw("Resize", [y, "", scales], **how)[0]
    less = g.number("Sub", g.size(x, 2), g.size(y, 2))
    before = g.number("Div", less, 2)
    pads = g.pads(3, 2, before, g.number("Sub", less, before))
    y = g.raw("Pad", [y, pads], mode=g.pick(["constant", "edge", "reflect"]))[0]
    g.node(g.pick(["Add", "Sub", "Max"]), [x, y], x.shape)


def levels(g):
    """A level of a pyramid, doubled and joined with the one below."""
    x = g.value(rank=3)
    pool = dict(kernel_shape=[3], strides=[2], pads=[1, 1])
    below, dim = x.name, x.shape[2]
    for _ in range(g.whole(1, 2)):
        below, dim = g.raw("MaxPool", [below], **pool)[0], each(lambda d: (d + 1) // 2, dim)
    above, half = below, dim
    for _ in range(g.whole(1, 2)):
        above, half = g.raw("MaxPool", [above], **pool)[0], each(lambda d: (d + 1) // 2, half)
    factor = g.pick([2, 4])
    if [factor * d for d in half] != list(dim):
        raise Unfit
    scales = g.constant(np.array([1, 1, factor], FLOAT))
    how = dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    up = g.raw("Resize", [above, "", scales], **how)[0]
    if g.flip():
        return g.node("Add", [below, up], replaced(x.shape, 2, dim))
    wide = each(lambda d: 2 * d, x.shape[1])
    g.node("Concat", [up, below], [x.shape[0], wide, dim], axis=1)


def table(g):
    """Rows of a table, as many as there are positions."""
    x = g.value(rank=3)
    k = g.pick([1, 2])
    shape = [1, 1, 1]
    shape[k], rows = max(x.shape[k]) + g.whole(0, 40), g.whole(0, 3)
    shape[k] += rows
    c = g.constant(g.random.standard_normal(shape).astype(FLOAT))
    end = g.size(x, k) if rows == 0 else g.number("Add", g.size(x, k), rows)
    g.node("Add", [x, g.slice(c, k, rows, end)], x.shape)


def kept_sum(g):
    """A size that is a sum, beside one that is inferred."""
    x = g.value(rank=3)
    more = g.whole(1, 2)
    if g.flip():
        y = g.raw("Pad", [x, g.pads(3, 1, more, 0)])[0]
        dim = each(lambda d: d + more, x.shape[1])
    else:
        y, dim = g.raw("Concat", [x, x], axis=1)[0], each(lambda d: 2 * d, x.shape[1])
    if g.flip():
        target = g.joined(-1, g.size(y, 1), 1)
        shape = [each(lambda a, b: a * b, x.shape[0], x.shape[2]), dim, same(1)]
        y = g.raw("Transpose", [y], perm=[0, 2, 1])[0]
        y = g.raw("Reshape", [y, g.joined(-1, g.size(y, 2), 1)])[0]
    else:
        y = g.raw("Reshape", [y, g.joined(g.size(x, 0), g.size(y, 1), -1, 1)])[0]
        target = g.joined(0, g.size(y, 1), -1)
        y, shape = g.raw("Reshape", [y, target])[0], [x.shape[0], dim, x.shape[2]]
    g.alias(y, shape)


def missing(g, size, block):
    """What a size lacks to a multiple, as one of several people write it."""
    how = g.whole(0, 3)
    if how == 0:
        less = g.number("Mod", size, block)
        return g.number("Mod", g.number("Sub", block, less), block)
    if how == 1:
        return g.number("Mod", g.raw("Neg", [size])[0], block)
    if how == 2:
        up = g.number("Div", g.number("Add", size, block - 1), block)
        return g.number("Sub", g.number("Mul", up, block), size)
    down = g.number("Mul", g.number("Div", size, block), block)
    less = g.number("Sub", size, down)
    return less if block == 2 else g.number("Mod", g.number("Sub", block, less), block)


def windows(g):
    """Padded to a multiple, in blocks, and back."""
    x = g.value(rank=3)
    block = g.pick([2, 3, 4, 7])
    n = x.shape[1]
    pad = missing(g, g.size(x, 1), block)
    y = g.raw("Pad", [x, g.pads(3, 1, 0, pad)])[0]
    count = g.number("Div", g.size(y, 1), block)
    y = g.raw("Reshape", [y, g.joined(g.size(x, 0), count, block, -1)])[0]
    if g.flip():
        mean = g.raw("ReduceMean", [y, g.ints(2)], keepdims=1)[0]
        y = g.raw("Sub", [y, mean])[0]
    else:
        y = g.raw("Softmax", [y], axis=2)[0]
    y = g.raw("Reshape", [y, g.joined(g.size(x, 0), g.number("Mul", count, block), -1)])[0]
    if g.flip(0.8):
        g.alias(g.slice(y, 1, 0, g.size(x, 1)), x.shape)
    else:
        g.alias(y, replaced(x.shape, 1, each(lambda d: -(-d // block) * block, n)))


def two_halves(g):
    """Two parts at the middle, in the other order, or one times the other."""
    x = g.value(rank=3)
    if min(x.shape[1]) < 2:
        raise Unfit
    middle = g.number("Div", g.size(x, 1), 2)
    if g.flip():
        parts = g.joined(middle, g.number("Sub", g.size(x, 1), middle))
        first, second = g.raw("Split", [x, parts], 2, axis=1)
    else:
        first, second = g.slice(x, 1, 0, middle), g.slice(x, 1, middle, 2**40)
    if g.flip():
        return g.node("Concat", [second, first], x.shape, axis=1)
    short = g.slice(second, 1, 0, middle)
    g.node("Mul", [first, short], replaced(x.shape, 1, each(lambda d: d // 2, x.shape[1])))


def selected(g):
    """Two values by one mask."""
    x = g.value(rank=3)
    row = g.raw("ReduceMean", [x, g.ints(1, 2)], keepdims=0)[0]
    # Not zero: what means were taken from has means of zero, and rounding would decide.
    least = g.pick([-0.07, 0.03, 0.11])
    masks = []
    for _ in range(2):
        one = g.raw("Greater", [row, g.constant(FLOAT(least))])[0]
        masks.append(one if not masks or g.flip() else masks[0])
    picked = []
    compress = g.flip(0.3)
    for mask in masks:
        if compress:
            picked.append(g.raw("Compress", [x, mask], axis=0)[0])
            continue
        places = g.raw("NonZero", [mask])[0]
        places = g.raw("Transpose", [places], perm=[1, 0])[0]
        picked.append(g.raw("GatherND", [x, places])[0])
    op = g.pick(["Add", "Concat", "Mul"])
    y = g.raw("Concat", picked, axis=2)[0] if op == "Concat" else g.raw(op, picked)[0]
    # As much of it as there is, added up; of none there is nothing.
    total = g.raw("ReduceSum", [y, g.ints(0)], keepdims=1)[0]
    y = g.raw("Tanh", [total])[0]
    wide = each(lambda d: 2 * d, x.shape[2]) if op == "Concat" else x.shape[2]
    g.alias(y, [same(1), x.shape[1], wide])


def relative(g):
    """`[n, 2n - 1]` by distance to `[n, n]` by position."""
    x = g.value(rank=3)
    n, rows = x.shape[1], g.whole(2, 12)
    if max(n) > 24:
        raise Unfit
    scores = g.raw("ReduceMean", [x, g.ints(2)], keepdims=1)[0]
    line = g.constant(g.random.standard_normal((1, 1, 2 * rows - 1)).astype(FLOAT))
    size = g.size(x, 1)
    pad = g.number("Max", g.number("Sub", size, rows), 0)
    start = g.number("Max", g.number("Sub", rows, size), 0)
    long = g.number("Sub", g.number("Add", size, size), 1)
    line = g.raw("Pad", [line, g.pads(3, 2, pad, pad)])[0]
    line = g.slice(line, 2, start, g.number("Add", start, long))
    y = g.raw("Mul", [scores, line])[0]
    y = g.raw("Pad", [y, g.pads(3, 2, 0, 1)])[0]
    flat = g.number("Mul", g.number("Mul", size, 2), size)
    y = g.raw("Reshape", [y, g.joined(g.size(x, 0), flat)])[0]
    y = g.raw("Pad", [y, g.pads(2, 1, 0, g.number("Sub", size, 1))])[0]
    y = g.raw("Reshape", [y, g.joined(g.size(x, 0), g.number("Add", size, 1), long)])[0]
    y = g.slice(g.slice(y, 1, 0, size), 2, g.number("Sub", size, 1), 2**40)
    g.alias(y, [x.shape[0], n, n])


def positions(g):
    """Numbers up to a size, and what comes later is masked."""
    x = g.value(rank=3)
    n = g.raw("Squeeze", [g.size(x, 1)])[0]
    at = g.raw("Range", [g.constant(INT(0)), n, g.constant(INT(1))])[0]
    column = g.raw("Unsqueeze", [at, g.ints(1)])[0]
    if g.flip():
        y = g.raw("Sin", [g.raw("Cast", [column], to=TensorProto.FLOAT)[0]])[0]
        return g.node("Add", [x, y], x.shape)
    if g.flip():
        square = g.raw("Expand", [g.constant(np.ones((1, 1), bool)), g.joined(g.size(x, 1), g.size(x, 1))])[0]
        ones = g.raw("Cast", [square], to=TensorProto.FLOAT)[0]
        upper = g.raw("Trilu", [ones, g.constant(INT(1))], upper=1)[0]
        later = g.raw("Cast", [upper], to=TensorProto.BOOL)[0]
    else:
        later = g.raw("Greater", [g.raw("Unsqueeze", [at, g.ints(0)])[0], column])[0]
    turned = g.raw("Transpose", [x], perm=[0, 2, 1])[0]
    scores = g.raw("Mul", [g.raw("MatMul", [x, turned])[0], g.constant(FLOAT(0.05))])[0]
    scores = g.raw("Where", [later, g.constant(FLOAT(-100)), scores])[0]
    g.node("MatMul", [g.raw("Softmax", [scores], axis=-1)[0], x], x.shape)


def filled(g):
    """A tensor of a computed shape, or one that is stretched to one."""
    x = g.value(rank=3)
    shape = g.raw("Shape", [x])[0]
    if g.flip():
        ones = g.raw("ConstantOfShape", [shape], value=helper.make_tensor("v", 1, [1], [0.5]))[0]
        return g.node("Mul", [x, ones], x.shape)
    mean = g.raw("ReduceMean", [x, g.ints(1)], keepdims=1)[0]
    if g.flip():
        shape = g.joined(*(g.size(x, k) for k in range(3)))
    if g.flip():
        # Sizes of -1 are those that are there: so the older exporter writes `expand`.
        asked = g.joined(-1, g.size(x, 1), -1)
        ones = g.raw("ConstantOfShape", [g.ints(3)], value=helper.make_tensor("v", 7, [1], [1]))[0]
        kept = g.raw("Equal", [asked, g.raw("Mul", [ones, g.ints(-1)])[0]])[0]
        shape = g.raw("Where", [kept, ones, asked])[0]
    y = g.raw("Expand", [mean, shape])[0]
    g.node("Sub", [x, y], x.shape)


def split_parts(g):
    """Parts of which the last one is smaller."""
    x = g.value(rank=3)
    if min(x.shape[1]) < 4:
        raise Unfit
    first, second = g.raw("Split", [x], 2, axis=1, num_outputs=2)
    part = each(lambda d: (d + 1) // 2, x.shape[1])
    g.alias(first, replaced(x.shape, 1, part))
    g.alias(second, replaced(x.shape, 1, each(lambda d: d // 2, x.shape[1])))


def shrunk_slice(g):
    """From one on, half as many as there are behind three."""
    x = g.value(rank=3)
    if min(x.shape[1]) < 5:
        raise Unfit
    less = g.number("Div", g.number("Sub", g.size(x, 1), 3), 2)
    y = g.slice(x, 1, 1, g.number("Add", less, 1))
    g.alias(y, replaced(x.shape, 1, each(lambda d: (d - 3) // 2, x.shape[1])))


def flattened(g):
    """Two axes as one, by their sizes or by what is left, and back."""
    x = g.value(rank=3)
    sizes = [g.size(x, k) for k in range(3)]
    flat = g.number("Mul", sizes[1], sizes[2])
    y = g.raw("Reshape", [x, g.joined(g.pick([0, -1]), flat)])[0]
    y = g.raw(g.pick(["Tanh", "Neg"]), [y])[0]
    back = g.joined(sizes[0], *g.pick([(sizes[1], -1), (-1, sizes[2]), tuple(sizes[1:])]))
    g.node("Reshape", [y, back], x.shape)


def two_names(g):
    """Values of one shape whose sizes have names of their own."""
    x = g.value(rank=3)
    fits = [v for v in g.values if v.shape == x.shape and v.name != x.name]
    y = g.pick(fits)
    op = g.pick(["Add", "Concat", "MatMul", "Where"])
    if op == "Add":
        return g.node("Add", [x, y], x.shape)
    if op == "Concat":
        k = g.whole(0, 2)
        shape = replaced(x.shape, k, each(lambda d: 2 * d, x.shape[k]))
        return g.node("Concat", [x, y], shape, axis=k)
    if op == "Where":
        return g.node("Where", [g.raw("Less", [x, y])[0], x, y], x.shape)
    turned = g.raw("Transpose", [y], perm=[0, 2, 1])[0]
    scaled = g.raw("Mul", [x, g.constant(FLOAT(0.05))])[0]
    g.node("MatMul", [scaled, turned], [x.shape[0], x.shape[1], x.shape[1]])


def resized(g):
    """To a part of the size, by floats, and back to it."""
    x = g.value(rank=3)
    part = g.pick([0.5, 0.75, 2.0])
    if min(x.shape[2]) < 2:
        raise Unfit
    wide = g.raw("Cast", [g.size(x, 2)], to=TensorProto.FLOAT)[0]
    wide = g.raw("Floor", [g.raw("Mul", [wide, g.constant(np.array([part], FLOAT))])[0]])[0]
    to = g.raw("Cast", [wide], to=TensorProto.INT64)[0]
    dim = each(lambda d: int(np.floor(d * part)), x.shape[2])
    how = dict(mode=g.pick(["linear", "nearest"]), nearest_mode="floor")
    how["coordinate_transformation_mode"] = "asymmetric"
    y = g.raw("Resize", [x, "", "", g.joined(g.size(x, 0), g.size(x, 1), to)], **how)[0]
    if g.flip():
        return g.alias(y, [*x.shape[:2], dim])
    sizes = g.joined(g.size(x, 0), g.size(x, 1), g.size(x, 2))
    y = g.raw("Resize", [y, "", "", sizes], **how)[0]
    g.node("Add", [x, y], x.shape)


def rolled(g):
    """Cut and joined in the other order."""
    x = g.value(rank=3)
    k, by = g.whole(1, 2), g.whole(1, 3)
    first, second = g.slice(x, k, 0, -by), g.slice(x, k, -by, 2**40)
    g.node("Concat", [second, first], x.shape, axis=k)


def repeated(g):
    """Each row several times, or all of them again."""
    x = g.value(rank=3)
    n = g.whole(2, 3)
    dim = each(lambda d: n * d, x.shape[1])
    if g.flip():
        return g.node("Tile", [x, g.ints(1, n, 1)], replaced(x.shape, 1, dim))
    y = g.raw("Unsqueeze", [x, g.ints(2)])[0]
    y = g.raw("Expand", [y, g.joined(1, 1, n, 1)])[0]
    more = g.number("Mul", g.size(x, 1), n)
    target = g.joined(g.size(x, 0), more, g.pick([-1, g.size(x, 2)]))
    g.node("Reshape", [y, target], replaced(x.shape, 1, dim))


def best(g):
    """The largest of a row, as many as there are up to a number."""
    x = g.value(rank=3)
    most = g.whole(2, 9)
    count = g.raw("Min", [g.size(x, 1), g.ints(most)])[0]
    y = g.raw("TopK", [x, count], 2, axis=1)[0]
    g.alias(y, replaced(x.shape, 1, each(lambda d: min(d, most), x.shape[1])))


def grown(g):
    """Grown by a transposed convolution, and cut to what is wanted."""
    x = g.value(rank=3)
    if not fixed(x.shape[1]):
        x = g.value(rank=3)
    if not fixed(x.shape[1]):
        raise Unfit
    c, stride = x.shape[1][0], g.whole(2, 3)
    w = g.weights(c, 4, 2 * stride, fan=c)
    y = g.raw("ConvTranspose", [x, w], strides=[stride])[0]
    wanted = g.number("Mul", g.size(x, 2), stride)
    y = g.slice(y, 2, 0, wanted)
    shape = [x.shape[0], same(4), each(lambda d: stride * d, x.shape[2])]
    if g.flip():
        return g.alias(y, shape)
    w = g.weights(c, 4, stride, fan=stride)
    back = g.raw("Conv", [y, w], strides=[stride])[0]
    g.node("Add", [x, back], x.shape)


def gathered(g):
    """Overlapping parts by a table of places, as the newer exporter writes `unfold`."""
    x = g.value(rank=3)
    wide = g.whole(2, 4)
    if min(x.shape[1]) < wide:
        raise Unfit
    count = g.number("Sub", g.size(x, 1), wide - 1)
    count = g.raw("Squeeze", [count])[0]
    at = g.raw("Range", [g.constant(INT(0)), count, g.constant(INT(1))])[0]
    at = g.raw("Unsqueeze", [at, g.ints(1)])[0]
    at = g.raw("Add", [at, g.constant(np.arange(wide, dtype=INT)[None])])[0]
    y = g.raw("Gather", [x, at], axis=1)[0]
    shape = replaced(x.shape, 1, each(lambda d: d - wide + 1, x.shape[1]))
    g.node("ReduceMax", [y, g.ints(2)], shape, keepdims=0)


def masked(g):
    """A joined length beside a mask of its own name, as decoders with a cache have it."""
    x, y = g.value(rank=3), g.value(rank=3)
    if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[2]:
        raise Unfit
    total = each(lambda a, b: a + b, x.shape[1], y.shape[1])
    joined = g.raw("Concat", [x, y], axis=1)[0]
    g.input([x.shape[0], total, same(1)] if g.flip() else [same(1), total, x.shape[2]])
    mask = g.values.pop()
    g.node(g.pick(["Add", "Mul"]), [joined, mask], [x.shape[0], total, x.shape[2]])


def mixed(g):
    """Channels to others, so that values do not stay as they are."""
    x = g.value(rank=3)
    if not fixed(x.shape[2]):
        raise Unfit
    n = g.pick([4, 6, 8])
    w = g.weights(x.shape[2][0], n, fan=x.shape[2][0])
    g.node("MatMul", [x, w], [*x.shape[:2], same(n)])


def turned(g):
    x = g.value(rank=3)
    g.node("Transpose", [x], [x.shape[0], x.shape[2], x.shape[1]], perm=[0, 2, 1])


STEPS = [halvings, odd, levels, table, kept_sum, windows, two_halves, selected, relative, positions, filled]
STEPS += [split_parts, shrunk_slice, flattened, two_names, two_names, mixed, turned]
STEPS += [resized, rolled, repeated, best, grown, gathered, masked]


@dataclass
class Case:
    """A model, and the inputs of each run."""

    seed: int
    model: onnx.ModelProto
    runs: list
    ranges: dict = field(default_factory=dict)  # of names of sizes: least and largest
    quantised: bool = False


def make(seed):
    """The model of a seed, the same each time."""
    g = Sizes([7, seed])

    def size(low, high):
        return Open(g.whole(low, high) for _ in range(graphs.RUNS))

    batch = size(1, 3)
    if g.flip(0.1):
        batch = Open([*batch[:-1], 0])
    # Some are next to multiples, as levels of a pyramid need them.
    near = Open(8 * g.whole(1, 3) - g.whole(0, 2) for _ in range(graphs.RUNS))
    shape = [g.pick([batch, same(2)]), size(5, 21), g.pick([size(5, 17), near, same(g.pick([4, 6]))])]
    for _ in range(g.whole(1, 3)):
        g.input(shape)
    for _ in range(g.whole(2, 7)):
        for _ in range(30):
            nodes, constants, values = len(g.nodes), len(g.constants), len(g.values)
            try:
                g.pick(STEPS)(g)
                if all(max(elements(v.shape)) <= MOST for v in g.values):
                    break
            except Unfit:
                pass
            del g.nodes[nodes:], g.constants[constants:], g.values[values:]
    made, sizes = model(g)
    ranges = {}
    if g.flip(0.3):
        for name, at in sizes.items():
            if min(at) > 0 and g.flip(0.8):
                ranges[name] = (max(min(at) - g.whole(0, 3), 1), max(at) + g.whole(0, 500))
    return Case(seed, made, [graphs.inputs(g, k) for k in range(graphs.RUNS)], ranges)


def model(g):
    """The graph as a model, and the named sizes in each run: what nothing reads is a result. An axis has the
    name of its size, or its own."""
    read = {name for node in g.nodes for name in node.input}
    results = [v for v in g.values if v.name not in read and v not in g.inputs] or g.values[-1:]
    own, names, sizes = g.flip(), {}, {}

    def info(v, name):
        dims = [d[0] if fixed(d) else name(v, k) for k, d in enumerate(v.shape)]
        return helper.make_tensor_value_info(v.name, TensorProto.FLOAT, dims)

    def named(v, k):
        key = (v.name, k) if own else v.shape[k]
        name = names.setdefault(key, f"s{len(names)}")
        sizes[name] = v.shape[k]
        return name

    made = helper.make_graph(
        g.nodes,
        "sizes",
        [info(v, named) for v in g.inputs],
        [info(v, lambda v, k: None) for v in results],
        g.constants,
    )
    made = helper.make_model(made, opset_imports=[helper.make_opsetid("", graphs.OPSET)], ir_version=9)
    onnx.checker.check_model(made)
    return made, sizes
