#!/usr/bin/env python3
"""Times what is no plain product or convolution against ONNX Runtime: single operators and small blocks.

    bench/operators.py                     all of them, one thread each
    bench/operators.py --only softmax      those whose name contains this
    bench/operators.py --most 1.3          fails where a ratio is above this

The two take turns. Beside the times stand the bytes of inputs and outputs in a second, over those that
a copy of as many bytes by NumPy moves in the same run, and the ratio of the times.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import peers

if __name__ == "__main__":
    peers.enter()

import numpy as np
from onnx import shape_inference

import harness
import kernels
import synthetic

IMAGE = (1, 33, 57, 57)
ROWS = (131, 770)


def unary(kind, shape=ROWS, **attributes):
    """One operator on one input."""
    def make(net):
        return net.op(kind, net.input("x", list(shape)), **attributes)
    return make


def integers(net, *values):
    return net.constant(np.array(values, np.int64))


def with_integers(kind, shape, *lists, **attributes):
    """One operator on an input and lists of integers."""
    def make(net):
        return net.op(kind, net.input("x", list(shape)), *(integers(net, *v) for v in lists), **attributes)
    return make


def convolution(channels, results, kernel, size, bend=None, **attributes):
    """One convolution of any form; `size` is that of the image, in any number of axes."""
    def make(net):
        x = net.input("x", [1, channels, *size])
        weight = net.weight(results, channels // attributes.get("group", 1), *kernel, scale=0.1)
        x = net.op("Conv", x, weight, net.weight(results, scale=0.1), kernel_shape=list(kernel), **attributes)
        return net.op(bend, x) if bend else x
    return make


def transposed(net):
    x = net.input("x", [1, 65, 28, 28])
    return net.op("ConvTranspose", x, net.weight(65, 33, 2, 2, scale=0.1), kernel_shape=[2, 2], strides=[2, 2])


def pool(kind, kernel, step, pad, shape=IMAGE, **attributes):
    rank = len(shape) - 2
    return unary(
        kind, shape, kernel_shape=[kernel] * rank, strides=[step] * rank, pads=[pad] * (2 * rank), **attributes
    )


def normalized(kind, shape, **attributes):
    """A normalization with a scale and a shift for each channel."""
    def make(net):
        x, size = net.input("x", list(shape)), shape[1]
        more = [net.weight(size, scale=0.1), net.constant(np.ones(size, np.float32))]
        given = [net.constant(np.ones(size, np.float32)), net.weight(size, scale=0.1)]
        return net.op(kind, x, *given, *(more if kind == "BatchNormalization" else []), **attributes)
    return make


def layer_norm(net):
    return synthetic.norm(net, net.input("x", list(ROWS)), ROWS[1])


def group_norm(net):
    x = net.input("x", [1, 32, 57, 57])
    flat = net.op("Reshape", x, integers(net, 0, 8, -1))
    ones, zeros = net.constant(np.ones(8, np.float32)), net.constant(np.zeros(8, np.float32))
    flat = net.op("InstanceNormalization", flat, ones, zeros)
    return net.op("Reshape", flat, integers(net, 1, 32, 57, 57))


def two(kind, left, right, **attributes):
    """One operator on two inputs."""
    def make(net):
        return net.op(kind, net.input("x", list(left)), net.input("y", list(right)), **attributes)
    return make


def gather(net):
    indices = net.random.integers(0, 1021, 300)
    return net.op("Gather", net.input("x", [1021, 129]), integers(net, *indices), axis=0)


def scatter(net):
    indices = net.constant(net.random.permutation(500)[:100].reshape(100, 1).astype(np.int64))
    return net.op("ScatterND", net.input("x", [500, 129]), indices, net.input("y", [100, 129]))


def largest(shape):
    """Where along axis 1 the largest element is, as a number of the type of results."""
    def make(net):
        return net.op("Cast", net.op("ArgMax", net.input("x", list(shape)), axis=1), to=synthetic.FLOAT)
    return make


def top_k(net):
    values = net.op("TopK", net.input("x", [64, 1000]), integers(net, 10))
    net.nodes[-1].output.append("places")
    return values


def clip(net):
    low, high = (net.constant(np.array(v, np.float32)) for v in (0.0, 6.0))
    return net.op("Clip", net.input("x", list(IMAGE)), low, high)


def resize(mode, how):
    def make(net):
        scales = net.constant(np.array([1, 1, 2, 2], np.float32))
        return net.op("Resize", net.input("x", [1, 33, 28, 28]), "", scales, mode=mode, coordinate_transformation_mode=how)
    return make


def padded(mode):
    return with_integers("Pad", IMAGE, [0, 0, 1, 2, 0, 0, 1, 2], mode=mode)


def inverted(net):
    """The block of small networks for images: wide, one channel at a time, narrow."""
    x = net.input("x", [1, 24, 56, 56])
    low, high = (net.constant(np.array(v, np.float32)) for v in (0.0, 6.0))
    y = net.op("Conv", x, net.weight(144, 24, 1, 1), net.weight(144, scale=0.1), kernel_shape=[1, 1])
    y = net.op("Clip", y, low, high)
    y = net.op("Conv", y, net.weight(144, 1, 3, 3), net.weight(144, scale=0.1), kernel_shape=[3, 3], pads=[1] * 4, group=144)
    y = net.op("Clip", y, low, high)
    y = net.op("Conv", y, net.weight(24, 144, 1, 1), net.weight(24, scale=0.1), kernel_shape=[1, 1])
    return net.op("Add", x, y)


def squeezed(net):
    """Channels weighted by what a small network says of their means."""
    x = net.input("x", [1, 96, 28, 28])
    y = net.op("GlobalAveragePool", x)
    y = net.op("Relu", net.op("Conv", y, net.weight(24, 96, 1, 1), net.weight(24, scale=0.1), kernel_shape=[1, 1]))
    y = net.op("Sigmoid", net.op("Conv", y, net.weight(96, 24, 1, 1), net.weight(96, scale=0.1), kernel_shape=[1, 1]))
    return net.op("Mul", x, y)


def wide_kernel(net):
    """7x7 windows of one channel each, a normalization over channels, a perceptron."""
    x = net.input("x", [1, 96, 28, 28])
    y = net.op("Conv", x, net.weight(96, 1, 7, 7), net.weight(96, scale=0.1), kernel_shape=[7, 7], pads=[3] * 4, group=96)
    y = synthetic.norm(net, net.op("Transpose", y, perm=[0, 2, 3, 1]), 96)
    y = net.linear(synthetic.gelu(net, net.linear(y, 96, 384)), 384, 96)
    return net.op("Add", x, net.op("Transpose", y, perm=[0, 3, 1, 2]))


def joined(net):
    """A coarse image made larger, beside a fine one."""
    coarse, fine = net.input("x", [1, 64, 28, 28]), net.input("y", [1, 32, 56, 56])
    large = net.op("ConvTranspose", coarse, net.weight(64, 32, 2, 2, scale=0.1), kernel_shape=[2, 2], strides=[2, 2])
    both = net.op("Concat", fine, large, axis=1)
    return net.op("Relu", net.op("Conv", both, net.weight(32, 64, 3, 3), net.weight(32, scale=0.1), kernel_shape=[3, 3], pads=[1] * 4))


def recurrent(kind, gates):
    def make(net):
        x = net.input("x", [37, 1, 48])
        weights = [net.weight(1, gates * 65, 48, scale=0.1), net.weight(1, gates * 65, 65, scale=0.1)]
        return net.op(kind, x, *weights, net.weight(1, 2 * gates * 65, scale=0.1), hidden_size=65)
    return make


def cases():
    """Name and model of every case."""
    functions = ["Relu", "Exp", "Log", "Tanh", "Sigmoid", "Erf", "Sqrt", "Sin", "Softplus", "HardSwish", "Elu"]
    yield from ((kind.lower(), unary(kind)) for kind in functions)
    yield "clip", clip
    yield "add", two("Add", ROWS, ROWS)
    yield "add_row", two("Add", ROWS, ROWS[1:])
    yield "add_column", two("Add", ROWS, (ROWS[0], 1))
    yield "add_channel", two("Add", IMAGE, (1, 33, 1, 1))
    yield "pow", two("Pow", ROWS, (1,))
    yield "softmax_rows", unary("Softmax", axis=-1)
    yield "softmax_channels", unary("Softmax", IMAGE, axis=1)
    yield "softmax_one_row", unary("Softmax", (1, 1000), axis=-1)
    yield "log_softmax", unary("LogSoftmax", axis=-1)
    yield "layer_norm", layer_norm
    yield "batch_norm", normalized("BatchNormalization", IMAGE)
    yield "instance_norm", normalized("InstanceNormalization", IMAGE)
    yield "group_norm", group_norm
    yield "lrn", unary("LRN", IMAGE, size=5)
    yield "lp_norm", unary("LpNormalization", axis=-1)
    yield "mean_rows", unary("ReduceMean", axes=[1])
    yield "mean_columns", unary("ReduceMean", axes=[0])
    yield "mean_image", unary("ReduceMean", IMAGE, axes=[2, 3])
    yield "max_middle", unary("ReduceMax", IMAGE, axes=[1])
    yield "sum_all", with_integers("ReduceSum", IMAGE, [0, 1, 2, 3])
    yield "square_sum", unary("ReduceL2", axes=[1])
    yield "argmax_rows", largest(ROWS)
    yield "argmax_channels", largest(IMAGE)
    yield "cumsum", with_integers("CumSum", ROWS, [1])
    yield "top_k", top_k
    yield "max_pool_2", pool("MaxPool", 2, 2, 0)
    yield "max_pool_3", pool("MaxPool", 3, 2, 1)
    yield "max_pool_3_dense", pool("MaxPool", 3, 1, 1)
    yield "average_pool", pool("AveragePool", 3, 1, 1)
    yield "average_pool_3d", pool("AveragePool", 2, 2, 0, (1, 17, 20, 20, 20))
    yield "global_average", unary("GlobalAveragePool", IMAGE)
    yield "resize_nearest", resize("nearest", "asymmetric")
    yield "resize_linear", resize("linear", "half_pixel")
    yield "resize_cubic", resize("cubic", "half_pixel")
    yield "transpose_2d", unary("Transpose", ROWS, perm=[1, 0])
    yield "transpose_last", unary("Transpose", IMAGE, perm=[0, 2, 3, 1])
    yield "transpose_first", unary("Transpose", (1, 57, 57, 33), perm=[0, 3, 1, 2])
    yield "transpose_heads", unary("Transpose", (131, 11, 70), perm=[1, 0, 2])
    yield "concat_channels", two("Concat", IMAGE, IMAGE, axis=1)
    yield "concat_last", two("Concat", (1021, 33), (1021, 17), axis=1)
    yield "slice", with_integers("Slice", IMAGE, [0, 3, 3], [33, 50, 50], [1, 2, 3])
    yield "pad_zero", padded("constant")
    yield "pad_mirror", padded("reflect")
    yield "tile", with_integers("Tile", ROWS, [2, 2])
    yield "expand", with_integers("Expand", (131, 1), [131, 770])
    yield "space_to_depth", unary("SpaceToDepth", (1, 16, 56, 56), blocksize=2)
    yield "depth_to_space", unary("DepthToSpace", (1, 64, 28, 28), blocksize=2)
    yield "gather", gather
    yield "scatter", scatter
    yield "where", lambda net: net.op("Where", net.op("Greater", net.input("x", list(ROWS)), net.input("y", list(ROWS))), "x", "y")
    yield "depthwise_3", convolution(65, 65, (3, 3), (56, 56), group=65, pads=[1] * 4)
    yield "depthwise_3_relu_step", convolution(96, 96, (3, 3), (56, 56), "Relu", group=96, pads=[1] * 4, strides=[2, 2])
    yield "depthwise_5", convolution(120, 120, (5, 5), (28, 28), group=120, pads=[2] * 4)
    yield "depthwise_7", convolution(96, 96, (7, 7), (28, 28), group=96, pads=[3] * 4)
    yield "groups", convolution(64, 64, (3, 3), (28, 28), group=16, pads=[1] * 4)
    yield "dilated", convolution(33, 33, (3, 3), (57, 57), dilations=[2, 2], pads=[2] * 4)
    yield "first_layer", convolution(3, 32, (3, 3), (224, 224), "Relu", strides=[2, 2], pads=[1] * 4)
    yield "first_layer_7", convolution(3, 64, (7, 7), (224, 224), "Relu", strides=[2, 2], pads=[3] * 4)
    yield "patches", convolution(3, 192, (16, 16), (224, 224), strides=[16, 16])
    yield "pointwise_step", convolution(65, 129, (1, 1), (57, 57), strides=[2, 2])
    yield "signal", convolution(40, 65, (5,), (1000,), "Relu", pads=[2] * 2)
    yield "signal_wide", convolution(1, 64, (80,), (16000,), "Relu", strides=[4])
    yield "signal_depthwise", convolution(96, 96, (31,), (250,), group=96, pads=[15] * 2)
    yield "volume", convolution(17, 17, (3, 3, 3), (20, 20, 20), pads=[1] * 6)
    yield "transposed", transposed
    yield "product_of_two", two("MatMul", (131, 77), (77, 131))
    yield "product_batched", two("MatMul", (12, 77, 64), (12, 64, 77))
    yield "product_turned", lambda net: net.op("Gemm", net.input("x", [131, 330]), net.input("y", [257, 330]), transB=1)
    yield "product_left_turned", lambda net: net.op("Gemm", net.input("x", [330, 131]), net.weight(330, 257), transA=1)
    yield "vector_of_two", two("MatMul", (1, 509), (509, 509))
    yield "einsum", two("Einsum", (77, 12, 64), (77, 12, 64), equation="ihd,jhd->hij")
    yield "lstm", recurrent("LSTM", 4)
    yield "gru", recurrent("GRU", 3)
    yield "inverted_residual", inverted
    yield "squeeze_excite", squeezed
    yield "wide_kernel_block", wide_kernel
    yield "upsample_join", joined


def model_of(name, make):
    net = synthetic.Net(name)
    return net.model(make(net))


def cells(model, inputs):
    """Bytes of inputs and outputs."""
    known = shape_inference.infer_shapes(model).graph.output
    outputs = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in known]
    sizes = [4 * int(np.prod(shape)) for shape in outputs]
    return sum(v.nbytes for v in inputs.values()) + sum(sizes)


def copy_rate(size):
    """Bytes that a copy reads and writes in a second, where both together are so many."""
    source = np.ones(max(size // 8, 64), np.float32)
    target = np.empty_like(source)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(8):
            np.copyto(target, source)
        times.append((time.perf_counter() - start) / 8)
    return 2 * source.nbytes / min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--rounds", type=int, default=2, help="turns for each (default: 2)")
    parser.add_argument("--seconds", type=float, default=0.1, help="of a turn (default: 0.1)")
    parser.add_argument("--most", type=float, help="fail where the ratio of the times is above this")
    parser.add_argument("--json", metavar="FILE", help="write the results there as well")
    args = parser.parse_args()
    program, cores = peers.binary(args.binary), peers.some_cores(1)
    rows, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in cases():
            if args.only not in name:
                continue
            try:
                model = model_of(name, make)
                both = kernels.time_one(program, model, folder, args.seconds, args.rounds, cores)
            except peers.Failed as error:
                failed.append(name)
                print(f"{name}: {error}", file=sys.stderr)
                continue
            ours, theirs, compiled = both
            size = cells(model, kernels.random_inputs(model)[0])
            of_copy = size / ours / copy_rate(size)
            rows.append({"name": name, "ours": ours, "onnxruntime": theirs, "of_copy": of_copy, "compile": compiled})
            print(f"{name}: {1e6 * ours:.1f} us, ratio {ours / theirs:.2f}", file=sys.stderr)
    rows.sort(key=lambda r: -r["ours"] / r["onnxruntime"])
    lines = [
        [r["name"], f"{1e6 * r['ours']:.1f}", f"{1e6 * r['onnxruntime']:.1f}", f"{r['ours'] / r['onnxruntime']:.2f}",
         f"{r['of_copy']:.2f}", f"{r['compile']:.2f}"]
        for r in rows
    ]
    print(harness.table(["case", "us", "ORT us", "ratio to ORT", "of a copy's rate", "compile s"], lines))
    if rows:
        mean = statistics.geometric_mean(r["ours"] / r["onnxruntime"] for r in rows)
        print(f"\nratio to ONNX Runtime: geometric mean {mean:.2f}, {len(failed)} of {len(rows) + len(failed)} failed")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=2) + "\n")
    slow = [r["name"] for r in rows if args.most and r["ours"] / r["onnxruntime"] > args.most]
    sys.exit(1 if failed or slow or not rows else 0)


if __name__ == "__main__":
    main()
