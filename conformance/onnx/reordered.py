"""Random models full of reshapes and transposes: heads, channel and pixel shuffles, window partitions and their way
back, between convolutions, products, norms, softmax, sums and joins.

`make(seed)` gives a model and the inputs of its runs, as `graphs` does; in half of the models the batch and the
rows are open.
"""

import numpy as np

import graphs
from graphs import FLOAT, INT, Case, Graph, Open, Unfit, each, elements, fixed, same

MOST = 20000  # elements of a value


def numbers(g, values):
    return g.constant(np.array(values, INT))


def number(d):
    """An extent as a target of Reshape has it."""
    return d[0] if fixed(d) else -1


def reshaped(g, x, shape):
    """A Reshape; of open sizes one is inferred, and those that stay in their place are taken over."""
    target = [0 if k < x.rank and d == x.shape[k] and not fixed(d) else number(d) for k, d in enumerate(shape)]
    if target.count(-1) > 1:
        raise Unfit
    g.node("Reshape", [x, numbers(g, target)], shape)
    return g.values[-1]


def turned(g, x, order):
    g.node("Transpose", [x], [x.shape[k] for k in order], perm=order)
    return g.values[-1]


def parts(g, dim):
    """A fixed extent in two factors."""
    if not fixed(dim):
        raise Unfit
    n = dim[0]
    a = g.pick(k for k in range(2, n) if n % k == 0)
    return same(a), same(n // a)


def split(g):
    x = g.value(least=2)
    k = g.whole(0, x.rank - 1)
    reshaped(g, x, [*x.shape[:k], *parts(g, x.shape[k]), *x.shape[k + 1 :]])


def merged(g):
    x = g.value(least=3)
    k = g.whole(0, x.rank - 2)
    reshaped(g, x, [*x.shape[:k], elements(x.shape[k : k + 2]), *x.shape[k + 2 :]])


def regrouped(g):
    """Two neighbours get other extents: with common digits or without."""
    x = g.value(least=2)
    k = g.whole(0, x.rank - 2)
    both = elements(x.shape[k : k + 2])
    reshaped(g, x, [*x.shape[:k], *parts(g, both), *x.shape[k + 2 :]])


def permuted(g):
    x = g.value(least=2)
    turned(g, x, [int(k) for k in g.random.permutation(x.rank)])


def shuffled(g):
    """An axis in groups, with groups and members exchanged."""
    x = g.value(least=2)
    k = g.whole(0, x.rank - 1)
    y = reshaped(g, x, [*x.shape[:k], *parts(g, x.shape[k]), *x.shape[k + 1 :]])
    order = list(range(y.rank))
    order[k], order[k + 1] = k + 1, k
    reshaped(g, turned(g, y, order), x.shape)


def heads(g):
    """[n, t, h * d] to [n, h, t, d], with or without attention, and back."""
    x = g.value(rank=3)
    h, d = parts(g, x.shape[2])
    y = turned(g, reshaped(g, x, [*x.shape[:2], h, d]), [0, 2, 1, 3])
    if g.flip():
        scaled = g.raw("Mul", [y, g.constant(FLOAT(0.2))])[0]
        other = turned(g, y, [0, 1, 3, 2])
        scores = g.raw("Softmax", [g.raw("MatMul", [scaled, other])[0]], axis=-1)[0]
        g.node("MatMul", [scores, y], y.shape)
        y = g.values[-1]
    if g.flip(0.8):
        reshaped(g, turned(g, y, [0, 2, 1, 3]), x.shape)


def pixels(g):
    """Channels to pixels."""
    x = g.value(rank=4)
    n, c, h, w = x.shape
    if not fixed(c) or c[0] % 4:
        raise Unfit
    two, rest = same(2), same(c[0] // 4)
    wide = [each(lambda d: 2 * d, d) for d in (h, w)]
    if g.flip(0.3):
        shape = [n, rest, *wide]
        return g.node("DepthToSpace", [x], shape, blocksize=2, mode=g.pick(["DCR", "CRD"]))
    if g.flip():
        y = turned(g, reshaped(g, x, [n, rest, two, two, h, w]), [0, 1, 4, 2, 5, 3])
    else:
        y = turned(g, reshaped(g, x, [n, two, two, rest, h, w]), [0, 3, 4, 1, 5, 2])
    reshaped(g, y, [n, rest, *wide])


def windows(g):
    """Rows and columns in windows, something for each window, and back."""
    x = g.value(rank=4)
    n, h, w, c = x.shape
    (a, p), (b, q) = parts(g, h), parts(g, w)
    y = turned(g, reshaped(g, x, [n, a, p, b, q, c]), [0, 1, 3, 2, 4, 5])
    y = reshaped(g, y, [elements([n, a, b]), elements([p, q]), c])
    kind = g.whole(0, 2)
    if kind == 0:
        g.node("Softmax", [y], y.shape, axis=1)
    elif kind == 1 and fixed(c):
        g.node("MatMul", [y, g.weights(c[0], c[0], fan=c[0])], y.shape)
    y = g.values[-1]
    if g.flip(0.8):
        y = turned(g, reshaped(g, y, [n, a, b, p, q, c]), [0, 1, 3, 2, 4, 5])
        reshaped(g, y, x.shape)


def channels_last(g):
    """A convolution between two transposes."""
    x = g.value(rank=4)
    order = g.pick([[0, 3, 1, 2], [0, 2, 3, 1], [0, 1, 3, 2]])
    turned(g, x, order)
    graphs.convolution(g)
    y = g.values[-1]
    if y.rank == 4:
        turned(g, y, [order.index(k) for k in range(4)])


def joined(g):
    """A value beside itself, or beside what has its shape."""
    x = g.value(least=2)
    y = g.pick(v for v in g.values if v.shape == x.shape and v.dtype == FLOAT)
    k = g.axis(x)
    dim = each(lambda d: 2 * d, x.shape[k])
    g.node("Concat", [x, y], [*x.shape[:k], dim, *x.shape[k + 1 :]], axis=k)


def added(g):
    """Two values of one shape."""
    x = g.value(least=2)
    y = g.pick(v for v in g.values if v.shape == x.shape and v.dtype == FLOAT and v.name != x.name)
    g.node(g.pick(["Add", "Sub", "Max"]), [x, y], x.shape)


MOVES = [split, merged, regrouped, permuted, permuted, shuffled, shuffled, heads, heads, pixels, windows, windows]
WORK = [graphs.convolution, graphs.convolution, graphs.product, graphs.product, graphs.layer_norm, graphs.softmax]
WORK += [graphs.unary, graphs.binary, graphs.reduce, graphs.cut, graphs.pad, graphs.pool, graphs.batch_norm]
WORK += [channels_last, channels_last, joined, added, added, graphs.split]


def make(seed):
    """The model of a seed, the same each time."""
    g = Graph(1_000_003 + seed)
    open_sizes = g.flip(0.5)

    def size(*sizes):
        one = g.pick(sizes)
        return Open(one + 2 * k for k in range(graphs.RUNS)) if open_sizes and g.flip() else same(one)

    channels = same(g.pick([6, 8, 12, 16, 20, 24, 58]))
    if g.flip(0.6):
        pixels_first = [size(1, 2), channels, same(g.pick([4, 6, 8, 12])), size(6, 8, 9)]
        g.input(pixels_first if g.flip(0.7) else [pixels_first[k] for k in (0, 2, 3, 1)])
    else:
        g.input([size(1, 2), size(5, 7, 12, 16), channels])
    if g.flip(0.3):
        g.input(g.inputs[0].shape)
    for _ in range(g.whole(4, 11)):
        for _ in range(30):
            nodes, constants, values = len(g.nodes), len(g.constants), len(g.values)
            try:
                g.pick(MOVES if g.flip(0.55) else WORK)(g)
                if all(max(elements(v.shape)) <= MOST and v.rank <= 6 for v in g.values):
                    break
            except Unfit:
                pass
            del g.nodes[nodes:], g.constants[constants:], g.values[values:]
    runs = [graphs.inputs(g, k) for k in range(graphs.RUNS if open_sizes else 1)]
    return Case(seed, graphs.model(g), runs, False)
