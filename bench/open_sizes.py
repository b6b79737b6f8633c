#!/usr/bin/env python3
"""Models with open sizes: one compilation against one for each size, and against ONNX Runtime.

An encoder of a text with an open length, and a convolutional reader of lines with an open height and
width. For each size: whether the result is that of ONNX Runtime, the time against that of a model
which is compiled for this size, and how much longer the first run at a size takes than the second.
Needs `tilewright`, `onnx` and `onnxruntime` where it runs.
"""

import argparse
import math
import statistics
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import synthetic
import tilewright


def encoder(layers=4, features=256, heads=4):
    """Layers of a transformer on `[n, features]`."""
    net = synthetic.Net(f"encoder_{layers}x{features}")
    x = net.input("x", ["n", features])
    for _ in range(layers):
        x = synthetic.layer(net, x, -1, features, heads)
    return net.model(x)


def reader(channels=(32, 64, 96), classes=97):
    """Convolutions and maxima on `[1, 1, h, w]`, then the classes of each column."""
    net = synthetic.Net("reader")
    x, before = net.input("x", [1, 1, "h", "w"]), 1
    for index, count in enumerate(channels):
        for deep in (before, count):
            weight, bias = net.weight(count, deep, 3, 3), net.weight(count, scale=0.1)
            x = net.op("Relu", net.op("Conv", x, weight, bias, kernel_shape=[3, 3], pads=[1] * 4))
        stride = 2 if index < 2 else 1
        x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, stride])
        before = count
    x = net.op("ReduceMean", x, axes=[2], keepdims=0)
    x = net.op("Transpose", x, perm=[0, 2, 1])
    return net.model(net.op("Softmax", net.linear(x, before, classes), axis=-1))


def shortest(calls, seconds):
    """The least time of each of some calls, which take turns."""
    best = [math.inf] * len(calls)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for index, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[index] = min(best[index], time.perf_counter() - start)
    return best


def distance(mine, theirs):
    """The largest difference, relative to values above one."""
    return float(np.max(np.abs(mine - theirs) / np.maximum(1, np.abs(theirs)), initial=0))


def compare(model, every, timed, args):
    """`every` and `timed` are shapes of the input; those of `timed` are compiled by themselves, too."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{model.graph.name}.onnx"
        onnx.save(model, path)
        module = tilewright.load(path)
    exe = module.compile(threads=1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [axis.dim_param for axis in model.graph.input[0].type.tensor_type.shape.dim]
    random = np.random.default_rng(0)
    worst, late = 0.0, []
    for shape in every:
        x = random.standard_normal(shape).astype(np.float32)
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            mine = exe(x)
            taken.append(time.perf_counter() - start)
        late.append(taken[0] - min(taken[1:]))
        worst = max(worst, distance(mine, peer.run(None, {"x": x})[0]))
    print(f"{model.graph.name}: {len(every)} sizes, largest difference {worst:.1e}; the first run at a size")
    print(f"  takes {statistics.median(late) * 1e6:.0f} us more than the next (at most {max(late) * 1e6:.0f} us)")
    ratios, peers = [], []
    for shape in timed:
        x = random.standard_normal(shape).astype(np.float32)
        dims = {name: size for name, size in zip(names, shape) if name}
        fixed = module.compile(threads=1, dims=dims)
        run = [lambda: exe(x), lambda: fixed(x), lambda: peer.run(None, {"x": x})]
        mine, alone, theirs = shortest(run, args.seconds)
        ratios.append(mine / alone)
        peers.append(mine / theirs)
        size = "x".join(str(size) for size in dims.values())
        print(f"  {size:>9}: {mine * 1e3:8.3f} ms, {ratios[-1]:.3f} of compiled for it, {peers[-1]:.3f} of ONNX Runtime")
    print(f"  geometric mean: {statistics.geometric_mean(ratios):.3f} and {statistics.geometric_mean(peers):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for how long each size is timed")
    parser.add_argument("--only", default="", help="models whose names contain this")
    args = parser.parse_args()
    lengths = [1, 2, 3, 5, 8, 13, 17, 31, 40, 64, 77, 96, 100, 127, 128, 150, 197, 200, 256, 300]
    lines = [(32, 32), (32, 77), (32, 100), (32, 320), (31, 129), (40, 150), (48, 192), (48, 331), (64, 65), (17, 250)]
    if args.only in "encoder":
        compare(encoder(), [[n, 256] for n in range(1, 301)], [[n, 256] for n in lengths], args)
    if args.only in "reader":
        every = [[1, 1, h, w] for h in range(8, 65, 5) for w in range(8, 340, 37)]
        compare(reader(), every, [[1, 1, h, w] for h, w in lines], args)


if __name__ == "__main__":
    main()
