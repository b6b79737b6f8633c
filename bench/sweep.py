#!/usr/bin/env python3
"""Random sizes, fixed and open, against ONNX Runtime: where a size falls off a cliff.

    bench/sweep.py                            every kind, one thread, for two minutes
    bench/sweep.py --only conv --seconds 600 --seed 7
    bench/sweep.py --no-peer --json sweep.json
    bench/sweep.py --most 1.3                 fails where the worst open size of a kind takes longer

A case is one operator with random sizes. It is compiled twice, with its sizes and with those that an
exporter leaves open, and runs on the same data. The table has a line for each kind: the median and the
worst of the time with open sizes over that with fixed ones, the same of the times of compilation, and the
geometric mean of the time with fixed sizes over that of ONNX Runtime; below it are the worst cases by name.
The same seed gives the same cases.
"""

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import peers

if __name__ == "__main__":
    peers.enter()

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import harness

KINDS = {}


def kind(make):
    """A kind of case, by the name of the function that makes one."""
    KINDS[make.__name__] = make
    return make


class Case:
    """One operator under construction: data for its inputs, and which of their axes are open."""

    def __init__(self, draw, seed):
        self.draw, self.data = draw, numpy.random.default_rng(seed)
        self.name, self.nodes, self.inputs, self.weights, self.open = "", [], {}, [], {}

    def floats(self, *shape, dtype=numpy.float32):
        return self.data.standard_normal(shape).astype(dtype)

    def bytes(self, *shape, dtype=numpy.int8):
        info = numpy.iinfo(dtype)
        return self.data.integers(info.min, info.max + 1, shape).astype(dtype)

    def input(self, value, *axes):
        name = f"x{len(self.inputs)}"
        self.inputs[name], self.open[name] = value, set(axes)
        return name

    def image(self, value):
        """An image whose batch is open, and of three images two have open sides as well."""
        sides = range(2, value.ndim)
        if self.draw.random() < 1 / 3:
            self.name, sides = f"{self.name}, open batch", ()
        return self.input(value, 0, *sides)

    def weight(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def op(self, operator, *inputs, results=1, domain="", **attributes):
        names = [f"y{len(self.nodes)}_{k}" for k in range(results)]
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names[0]

    def model(self, result, is_open):
        def info(name, value):
            shape = list(value.shape)
            if is_open:
                shape = [f"{name}_{k}" if k in self.open[name] else n for k, n in enumerate(shape)]
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)

        inputs = [info(name, value) for name, value in self.inputs.items()]
        output = onnx.ValueInfoProto(name=result)
        graph = helper.make_graph(self.nodes, "case", inputs, [output], self.weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        # The type of the result follows from the rest.
        inferred = onnx.shape_inference.infer_shapes(model)
        found = inferred.graph.output[0].type.tensor_type.elem_type or TensorProto.FLOAT
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info(result, found, None))
        return model


def product_sizes(draw):
    rows = draw.choice([1, 2, 3, 5, 9, draw.randint(1, 40), draw.randint(1, 300)])
    return rows, draw.randint(8, 1100), draw.randint(8, 700)


def product_of(case, dtype):
    rows, columns, inner = product_sizes(case.draw)
    case.name = f"{rows}x{inner}x{columns}"
    x = case.input(case.floats(rows, inner, dtype=dtype), 0)
    return case.op("MatMul", x, case.weight(case.floats(inner, columns, dtype=dtype)))


@kind
def product(case):
    return product_of(case, numpy.float32)


@kind
def product_half(case):
    return product_of(case, numpy.float16)


@kind
def product_double(case):
    return product_of(case, numpy.float64)


@kind
def product_integer(case):
    rows, columns, inner = product_sizes(case.draw)
    case.name = f"{rows}x{inner}x{columns}"
    weight = case.weight(case.bytes(inner, columns))
    if case.draw.random() < 0.5:
        x = case.input(case.bytes(rows, inner, dtype=numpy.uint8), 0)
        zero = case.weight(numpy.uint8(case.draw.randint(0, 255)))
        return case.op("MatMulInteger", x, weight, zero)
    x = case.input(case.floats(rows, inner), 0)
    case.name += " dynamic"
    scale, zero = case.weight(numpy.float32(0.01)), case.weight(numpy.int8(3))
    return case.op("DynamicQuantizeMatMul", x, weight, scale, zero, domain="com.microsoft")


@kind
def product_of_inputs(case):
    """Both factors are inputs, in batches, as in attention: rows, columns or the reduction are open."""
    batch, rows = case.draw.randint(1, 12), case.draw.randint(1, 200)
    columns, inner = case.draw.randint(8, 200), case.draw.randint(8, 130)
    if case.draw.random() < 0.5:
        case.name = f"{batch}x{rows}x{inner}x{columns}, rows and columns"
        axes = [[1], [2]]
    else:
        case.name = f"{batch}x{rows}x{inner}x{columns}, rows and reduction"
        axes = [[1, 2], [1]]
    a = case.input(case.floats(batch, rows, inner), *axes[0])
    return case.op("MatMul", a, case.input(case.floats(batch, inner, columns), *axes[1]))


def convolution(case, channels, results, groups, stride, rank=2, most=60):
    draw = case.draw
    window, dilation = draw.choice([1, 3, 3, 3, 5, 7]), draw.choice([1, 1, 1, 2])
    extents = [draw.randint(max(window, 5), most) for _ in range(rank)]
    image = case.floats(1, channels, *extents)
    weight = case.floats(results, channels // groups, *[window] * rank)
    where = "x".join(map(str, extents))
    case.name = f"{channels}->{results} window {window} stride {stride} dilation {dilation} at {where}"
    x = case.image(image)
    return case.op(
        "Conv", x, case.weight(weight), pads=[dilation * (window // 2)] * 2 * rank,
        strides=[stride] * rank, dilations=[dilation] * rank, group=groups,
    )


@kind
def conv(case):
    return convolution(case, case.draw.randint(1, 140), case.draw.randint(1, 140), 1, 1)


@kind
def conv_strided(case):
    return convolution(case, case.draw.randint(1, 140), case.draw.randint(1, 140), 1, 2)


@kind
def conv_depthwise(case):
    channels = case.draw.randint(2, 140)
    return convolution(case, channels, channels, channels, case.draw.choice([1, 1, 2]))


@kind
def conv_grouped(case):
    groups = case.draw.choice([2, 3, 4, 5])
    channels, results = (groups * case.draw.randint(3, 24) for _ in range(2))
    return convolution(case, channels, results, groups, case.draw.choice([1, 1, 2]))


@kind
def conv_line(case):
    channels, results = (case.draw.randint(5, 140) for _ in range(2))
    return convolution(case, channels, results, 1, case.draw.choice([1, 1, 2]), rank=1, most=900)


@kind
def conv_cube(case):
    channels, results = (case.draw.randint(3, 40) for _ in range(2))
    return convolution(case, channels, results, 1, case.draw.choice([1, 1, 2]), rank=3, most=14)


@kind
def conv_transposed(case):
    draw = case.draw
    channels, results = draw.randint(3, 90), draw.randint(3, 90)
    window, stride = draw.choice([2, 3, 4, 7]), draw.choice([1, 2, 3])
    extents = [draw.randint(4, 40) for _ in range(2)]
    case.name = f"{channels}->{results} window {window} stride {stride} at {extents[0]}x{extents[1]}"
    x = case.image(case.floats(1, channels, *extents))
    weight = case.weight(case.floats(channels, results, window, window))
    return case.op("ConvTranspose", x, weight, strides=[stride] * 2)


def recurrent(case, operator, gates):
    draw = case.draw
    steps, batch, inner, hidden = (draw.randint(*ends) for ends in [(5, 60), (1, 4), (16, 150), (16, 160)])
    directions = draw.choice([1, 1, 2])
    case.name = f"{steps}x{batch}x{inner} -> {hidden}, {directions} ways"
    x = case.input(case.floats(steps, batch, inner), 0)
    w = case.weight(case.floats(directions, gates * hidden, inner) / 10)
    r = case.weight(case.floats(directions, gates * hidden, hidden) / 10)
    bias = case.weight(case.floats(directions, 2 * gates * hidden))
    how = ["forward", "bidirectional"][directions - 1]
    return case.op(operator, x, w, r, bias, hidden_size=hidden, direction=how)


@kind
def lstm(case):
    return recurrent(case, "LSTM", 4)


@kind
def gru(case):
    return recurrent(case, "GRU", 3)


def image(case):
    draw = case.draw
    shape = [draw.randint(1, 3), draw.randint(3, 100), draw.randint(10, 60), draw.randint(10, 60)]
    case.name = "x".join(map(str, shape))
    return case.image(case.floats(*shape))


def rows(case):
    shape = [case.draw.randint(1, 4), case.draw.randint(20, 300), case.draw.randint(30, 700)]
    case.name = "x".join(map(str, shape))
    return case.input(case.floats(*shape), 0, 1)


def chosen(case, *choices):
    """One of some choices, which becomes part of the name."""
    found = case.draw.choice(choices)
    case.name += f" {found}"
    return found


@kind
def reduction(case):
    x, operator = image(case), chosen(case, "ReduceMean", "ReduceMax", "ReduceSumSquare")
    return case.op(operator, x, axes=chosen(case, [1], [2, 3], [0, 2, 3], [3], [2], [0]))


@kind
def arg_max(case):
    return case.op("ArgMax", image(case), axis=chosen(case, 1, 2, 3))


@kind
def softmax(case):
    return case.op("Softmax", rows(case), axis=chosen(case, -1, -1, 1))


@kind
def layer_norm(case):
    x = rows(case)
    width = case.inputs[x].shape[-1]
    return case.op("LayerNormalization", x, case.weight(case.floats(width)), case.weight(case.floats(width)))


@kind
def instance_norm(case):
    x = image(case)
    width = case.inputs[x].shape[1]
    return case.op("InstanceNormalization", x, case.weight(case.floats(width)), case.weight(case.floats(width)))


@kind
def pool(case):
    x, stride = image(case), case.draw.choice([1, 2])
    operator, window = chosen(case, "MaxPool", "AveragePool"), chosen(case, 2, 3, 5)
    pads = {"pads": [1] * 4} if operator == "MaxPool" and window > 2 else {}
    case.name += f" stride {stride}"
    return case.op(operator, x, kernel_shape=[window] * 2, strides=[stride] * 2, **pads)


@kind
def transpose(case):
    x = image(case)
    return case.op("Transpose", x, perm=chosen(case, [0, 2, 3, 1], [0, 1, 3, 2], [0, 2, 1, 3], [3, 1, 2, 0]))


@kind
def pad(case):
    x, mode = image(case), chosen(case, "constant", "reflect", "edge")
    return case.op("Pad", x, case.weight(numpy.array([0, 0, 2, 3, 0, 0, 1, 2])), mode=mode)


@kind
def resize(case):
    x, mode = image(case), chosen(case, "nearest", "linear")
    factor = chosen(case, 2.0, 1.5, 0.5)
    scales = case.weight(numpy.array([1, 1, factor, factor], numpy.float32))
    return case.op("Resize", x, "", scales, mode=mode)


@kind
def concat(case):
    x = image(case)
    return case.op("Concat", x, case.op("Relu", x), axis=chosen(case, 1, 2, 3))


@kind
def gather(case):
    width, count = case.draw.randint(20, 300), case.draw.randint(5, 400)
    case.name = f"{count} rows of {width}"
    table = case.weight(case.floats(500, width))
    indices = case.data.integers(0, 500, (1, count)).astype(numpy.int64)
    return case.op("Gather", table, case.input(indices, 0, 1))


@kind
def elementwise(case):
    x = image(case)
    return case.op(chosen(case, "Tanh", "Sigmoid", "Exp", "Relu", "Softplus", "HardSwish", "Erf"), x)


@kind
def cast(case):
    to = chosen(case, "int32", "float16", "int8")
    type_of = {"int32": TensorProto.INT32, "float16": TensorProto.FLOAT16, "int8": TensorProto.INT8}[to]
    shape = [case.draw.randint(1, 4), case.draw.randint(20, 300), case.draw.randint(30, 700)]
    case.name = f"{'x'.join(map(str, shape))} {to}"
    return case.op("Cast", case.input(case.floats(*shape), 0, 1), to=type_of)


def shortest(command, turns, seconds):
    """The shortest time of some turns, and the time of compilation."""
    times = [command.turn(seconds)[1] for _ in range(turns)]
    return min(times), command.compile


def measured(case, result, program, folder, args, cores):
    """Times of a case by column."""
    given = Path(folder) / "in.npz"
    harness.save_npz(given, case.inputs)
    found = {}
    for column, is_open in (("fixed", False), ("open", True)):
        path = Path(folder) / f"{column}.onnx"
        onnx.save(case.model(result, is_open), path)
        options = ["--no-cache"] + (["--open"] if is_open else [])
        own = peers.Tilewright(program, path, given, args.threads, cores, options)
        found[column], found[f"{column} compile"] = shortest(own, args.rounds, args.each)
    if args.peer:
        try:
            path = Path(folder) / "fixed.onnx"
            other = peers.Peer("onnxruntime", path, given, args.threads, cores)
            found["onnxruntime"] = min(other.times(args.each))
            other.close()
        except peers.Failed as error:
            print(f"{case.name}: ONNX Runtime: {error}", file=sys.stderr)
    return found


def table(cases):
    """A line for each kind, and the worst open size of each."""
    lines, worst = [], []
    for name in dict.fromkeys(c["kind"] for c in cases):
        own = [c for c in cases if c["kind"] == name]
        ratios = sorted((c["open"] / c["fixed"], k) for k, c in enumerate(own))
        compiled = [c["open compile"] / c["fixed compile"] for c in own]
        beside = [c["fixed"] / c["onnxruntime"] for c in own if "onnxruntime" in c]
        mean = f"{statistics.geometric_mean(beside):.2f}" if beside else ""
        most, last = ratios[-1]
        worst.append((most, name, own[last]))
        lines.append([
            name, str(len(own)), f"{statistics.median(r[0] for r in ratios):.2f}", f"{most:.2f}",
            f"{statistics.median(compiled):.2f}", f"{max(compiled):.2f}", mean,
        ])
    return lines, sorted(worst, key=lambda w: -w[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--seed", type=int, default=0, help="of the sizes and the data (default: 0)")
    parser.add_argument("--seconds", type=float, default=120.0, help="when no other case begins (default: 120)")
    parser.add_argument("--each", type=float, default=0.1, help="seconds of a turn (default: 0.1)")
    parser.add_argument("--threads", type=int, default=1, help="of each program (default: 1)")
    parser.add_argument("--rounds", type=int, default=1, help="turns of each (default: 1)")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="without ONNX Runtime")
    parser.add_argument("--most", type=float, default=math.inf, help="fails where open over fixed is above this")
    parser.add_argument("--json", metavar="FILE", help="write all times there as well")
    args = parser.parse_args()
    program, cores = peers.binary(args.binary), peers.some_cores(args.threads)
    kinds = [name for name in KINDS if args.only in name]
    end, number, cases = time.monotonic() + args.seconds, 0, []
    with tempfile.TemporaryDirectory() as folder:
        while kinds and time.monotonic() < end:
            name = kinds[number % len(kinds)]
            # The cases of a kind do not depend on which other kinds run.
            seed = f"{args.seed} {name} {number // len(kinds)}"
            number += 1
            case = Case(random.Random(seed), sum(seed.encode()))
            result = KINDS[name](case)
            try:
                found = measured(case, result, program, folder, args, cores)
            except peers.Failed as error:
                print(f"{name} {case.name}: {error}", file=sys.stderr)
                continue
            cases.append({"kind": name, "name": case.name, **found})
            ratio = found["open"] / found["fixed"]
            if ratio > 1.3:
                say = f"{name} {case.name}: fixed {found['fixed'] * 1e6:.0f} us, open {ratio:.1f} times that"
                print(say, file=sys.stderr, flush=True)
    lines, worst = table(cases)
    header = ["kind", "cases", "open/fixed", "worst", "compile", "worst", "fixed/ORT"]
    print(harness.table(header, lines))
    for ratio, name, case in worst:
        print(f"worst of {name}: {ratio:.2f} at {case['name']} ({case['fixed'] * 1e6:.0f} us)")
    if args.json:
        Path(args.json).write_text(json.dumps(cases, indent=2) + "\n")
    sys.exit(0 if cases and all(w[0] <= args.most for w in worst) else 1)


if __name__ == "__main__":
    main()
