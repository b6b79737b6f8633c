#!/usr/bin/env python3
"""Whether `tilewright verify` decides what optimisers of others made of a model, and finds wrong rewrites.

    optimisers.py [--only SUBSTRING] [--binary PROGRAM] [--timeout SECONDS] [--random N] [--quantised N]
                  [--faults N] [--only-faults] [--first SEED]

Twenty-two models, and N random ones of each generator (with branches, loops, lists, sizes that data decide), go through ONNX Runtime's levels basic, extended and all, and through `onnxsim` and `onnxoptimizer` where
these are installed; the saved result, and a copy, is compared with the model, with floats as they are computed first, and where
that is no yes, as real numbers (`--real`): an optimiser may round in another way.

With `--quantised N`, these are N models of each family of `quantised.py` in each of its formats, and no other ones.

Then wrong rewrites are made, from a seed (`--first`): swapped operands, a wrong axis, a dropped scale or bias, a transposed square, pads
that are off by one, another epsilon, another bound of a clip, branches that are exchanged or taken twice, another dilation or
slope, a sum for a mean, a table that is read one further, a stage without effect. Each changes what ONNX Runtime computes, and must be found. One that is called
equal is a failure, as is a model of which an optimiser's result is said to differ in the reals.
"""

import argparse
import collections
import copy
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import environment

environment.enter()

import graphs  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import quantised  # noqa: E402
import size_arithmetic  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from rewritten import MODELS  # noqa: E402

LEVELS = {
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
LIGHT = ["squeezenet", "resnet50", "shufflenet", "densenet121", "inception_v1", "inception_v2"]
ANSWERS = {0: "equal", 1: "differ", 2: "refused", 3: "undecided"}


def light(name):
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    return onnx.load(folder / f"light_{name}.onnx")


def models(count, count_quantised):
    """Each with its name, as a function that makes it."""
    if count_quantised:
        for seed in range(count_quantised):
            for family in quantised.FAMILIES:
                for form in quantised.FORMATS:
                    make = lambda family=family, form=form, seed=seed: quantised.make(family, form, seed)  # noqa: E731
                    yield f"{family}_{form}_{seed}", make
        return
    yield from MODELS.items()
    for name in LIGHT:
        yield name, lambda name=name: light(name)
    for generator in (graphs, size_arithmetic):
        for seed in range(count):
            name = f"{generator.__name__.split('_')[0]}_{seed}"
            yield name, lambda generator=generator, seed=seed: generator.make(seed).model


def optimised(source, level, target):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def by_onnxsim(source, target):
    import onnxsim

    made, _ = onnxsim.simplify(onnx.load(source))
    onnx.save(made, target)


def by_onnxoptimizer(source, target):
    import onnxoptimizer

    onnx.save(onnxoptimizer.optimize(onnx.load(source)), target)


def optimisers():
    """Each with its name."""
    yield "none", shutil.copyfile
    for level in LEVELS:
        yield level, lambda source, target, level=level: optimised(source, level, target)
    yield "onnxsim", by_onnxsim
    yield "optimizer", by_onnxoptimizer


def verify(program, a, b, timeout, real=False):
    """The answer, how long it took, and what was said."""
    start = time.monotonic()
    try:
        command = [program, "verify", str(a), str(b)] + ["--real"] * real
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "no answer", timeout, ""
    said = (done.stdout + done.stderr).strip().splitlines()
    answer = ANSWERS.get(done.returncode, f"exit {done.returncode}")
    return answer, time.monotonic() - start, said[0] if said else ""


class Faults:
    """Wrong rewrites of models, from a seed."""

    KINDS = ["swapped operands", "wrong axis", "dropped scale", "dropped bias", "transposed square", "pads off by one", "other epsilon",
             "other bound", "exchanged branches", "branch twice", "other dilation", "other slope", "sum for mean", "shifted table", "missing stage"]

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def make(self, model, kind):
        """A model with one fault of a kind, and where; `None` where it has no place for that."""
        model = copy.deepcopy(model)
        graph = model.graph
        constants = {t.name: t for t in graph.initializer}
        places = list(getattr(self, kind.replace(" ", "_"))(graph, constants))
        if not places:
            return None
        node, change = places[self.random.integers(len(places))]
        change()
        return model, f"{node.op_type} {node.output[0]}"

    def swapped_operands(self, graph, constants):
        for node in graph.node:
            if node.op_type in ("MatMul", "Sub", "Div", "Concat") and len(node.input) >= 2:
                def swap(node=node):
                    node.input[0], node.input[1] = node.input[1], node.input[0]
                yield node, swap

    def wrong_axis(self, graph, constants):
        for node in graph.node:
            for a in node.attribute:
                if a.name == "axis" and node.op_type in ("Softmax", "Concat", "Gather"):
                    def turn(a=a):
                        a.i = 0 if a.i in (1, -1, 3) else 1
                    yield node, turn
                if a.name == "perm" and len(a.ints) > 2:
                    def swap(a=a):
                        a.ints[1], a.ints[2] = a.ints[2], a.ints[1]
                    yield node, swap

    def bypassed(self, graph, constants, kinds):
        for node in graph.node:
            if node.op_type not in kinds:
                continue
            other = [name for name in node.input if name not in constants]
            if len(other) != 1:
                continue

            def bypass(node=node, other=other):
                for reader in graph.node:
                    for k, name in enumerate(reader.input):
                        if name == node.output[0]:
                            reader.input[k] = other[0]
            if node.output[0] not in [o.name for o in graph.output]:
                yield node, bypass

    def dropped_scale(self, graph, constants):
        yield from self.bypassed(graph, constants, ("Mul", "Div"))

    def dropped_bias(self, graph, constants):
        yield from self.bypassed(graph, constants, ("Add",))
        for node in graph.node:
            if node.op_type in ("Conv", "Gemm") and len(node.input) == 3:
                yield node, lambda node=node: node.input.pop()

    def transposed_square(self, graph, constants):
        for node in graph.node:
            for name in node.input:
                t = constants.get(name)
                if t is not None and len(t.dims) >= 2 and t.dims[-1] == t.dims[-2] > 1 or t is not None and len(t.dims) == 4 and t.dims[0] == t.dims[1] > 1:
                    def turn(t=t):
                        value = numpy_helper.to_array(t)
                        axes = (0, 1) if len(t.dims) == 4 and t.dims[0] == t.dims[1] else (-1, -2)
                        t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(np.swapaxes(value, *axes)), t.name))
                    yield node, turn

    def pads_off_by_one(self, graph, constants):
        for node in graph.node:
            for a in node.attribute:
                if a.name == "pads" and len(a.ints) == 4 and a.ints[0] > 0:
                    def move(a=a):
                        a.ints[0], a.ints[2] = a.ints[0] - 1, a.ints[2] + 1
                    yield node, move

    def other_epsilon(self, graph, constants):
        for node in graph.node:
            for a in node.attribute:
                if a.name == "epsilon":
                    def grow(a=a):
                        a.f = 0.05
                    yield node, grow


    def other_bound(self, graph, constants):
        for node in graph.node:
            for name in node.input[1:] if node.op_type == "Clip" else []:
                def move(t=constants[name]):
                    t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t) * np.float32(0.7) + np.float32(0.2), t.name))
                yield node, move

    def exchanged_branches(self, graph, constants):
        """Two values of one shape that are read in each other's place, in one reader of each."""
        shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in onnx.shape_inference.infer_shapes(helper.make_model(graph)).graph.value_info}
        readers = [(node, k) for node in graph.node for k, name in enumerate(node.input) if name in shapes]
        for node, k in readers:
            for other, j in readers:
                a, b = node.input[k], other.input[j]
                # An earlier one may not read what is made from it.
                if a < b and shapes[a] == shapes[b] and node.op_type == other.op_type != "Mul" and node is not other:
                    def swap(node=node, k=k, other=other, j=j):
                        node.input[k], other.input[j] = other.input[j], node.input[k]
                    yield node, swap

    def branch_twice(self, graph, constants):
        for node in graph.node:
            if node.op_type in ("Add", "Mul", "MatMul", "Sub") and len(set(node.input)) == 2 and not any(name in constants for name in node.input):
                def double(node=node):
                    node.input[1] = node.input[0]
                yield node, double

    def other_dilation(self, graph, constants):
        for node in graph.node:
            attributes = {a.name: a for a in node.attribute}
            kernel = list(attributes["kernel_shape"].ints) if "kernel_shape" in attributes else []
            pads = attributes.get("pads")
            if node.op_type == "Conv" and kernel and kernel[0] % 2 == 1 and kernel[0] > 1 and pads is not None:
                old = attributes["dilations"].ints[0] if "dilations" in attributes else 1
                def widen(node=node, pads=pads, kernel=kernel, old=old):
                    new = 2 if old == 1 else 1
                    pads.ints[:] = [p + (new - old) * (kernel[0] // 2) for p in pads.ints]
                    kept = [a for a in node.attribute if a.name != "dilations"]
                    del node.attribute[:]
                    node.attribute.extend(kept + [helper.make_attribute("dilations", [new] * len(kernel))])
                yield node, widen

    def other_slope(self, graph, constants):
        for node in graph.node:
            for a in node.attribute:
                if a.name in ("alpha", "beta") and a.f:
                    def turn(a=a):
                        a.f = a.f * 1.3
                    yield node, turn

    def sum_for_mean(self, graph, constants):
        for node in graph.node:
            if node.op_type in ("ReduceMean", "AveragePool", "GlobalAveragePool", "MaxPool", "GlobalMaxPool"):
                def turn(node=node):
                    node.op_type = {"ReduceMean": "ReduceMax", "AveragePool": "MaxPool", "GlobalAveragePool": "GlobalMaxPool",
                                    "MaxPool": "AveragePool", "GlobalMaxPool": "GlobalAveragePool"}[node.op_type]
                yield node, turn

    def shifted_table(self, graph, constants):
        for node in graph.node:
            t = constants.get(node.input[1]) if node.op_type in ("Gather", "GatherElements") else None
            if t is not None and len(t.dims) > 0:
                def roll(t=t):
                    t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(np.roll(numpy_helper.to_array(t), 1, -1)), t.name))
                yield node, roll

    def missing_stage(self, graph, constants):
        yield from self.bypassed(graph, constants, ("Relu", "Clip", "Sigmoid", "Tanh", "Erf", "Neg", "Softmax", "LeakyRelu", "Sqrt", "LayerNormalization", "HardSwish"))


def results(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def is_fault(right, wrong):
    """Whether a changed model still runs, and gives something else."""
    random = np.random.default_rng(7)
    feeds = {}
    for port in right.graph.input:
        shape = [d.dim_value or 5 for d in port.type.tensor_type.shape.dim]
        feeds[port.name] = random.standard_normal(shape).astype(np.float32)
    try:
        pairs = list(zip(results(right, feeds), results(wrong, feeds)))
    except Exception:  # noqa: BLE001 - what the fault makes of the model is no model
        return False
    if any(x.shape != y.shape for x, y in pairs):
        return False
    return any(np.abs(x - y).max() > 1e-3 * np.abs(x).max() for x, y in pairs)


def compare_optimised(arguments, program, folder):
    """Compares all models with what optimisers make of them: counts of answers, and failures."""
    counts, failures, why = collections.Counter(), 0, collections.Counter()
    for name, make in models(arguments.random, arguments.quantised):
        if arguments.only not in name:
            continue
        source = folder / f"{name}.onnx"
        onnx.save(make(), source)
        for level, optimise in optimisers():
            target = folder / f"{name}_{level}.onnx"
            try:
                optimise(source, target)
            except ImportError:
                continue
            except Exception as error:  # noqa: BLE001 - some optimisers fail on some models
                print(f"{name:12} {level:9} {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}")
                continue
            answer, seconds, said = verify(program, source, target, arguments.timeout)
            if answer not in ("equal", "refused"):
                first, at_first = answer, said
                answer, more, said = verify(program, source, target, arguments.timeout, real=True)
                seconds += more
                failures += answer == "differ"
                answer = "real" if answer == "equal" else answer
                if answer == "undecided" and first == "differ":
                    answer, said = "rounded", at_first
            counts[(level, answer)] += 1
            if answer not in ("equal", "real"):
                why[said.split("undecided: ")[-1][:70]] += 1
            print(f"{name:12} {level:9} {answer:10} {seconds:6.1f} s  {said[:200]}", flush=True)
    kinds = ["equal", "real", "rounded", "differ", "undecided", "refused", "no answer"]
    print(f"\n{'':9} " + " ".join(f"{kind:>9}" for kind in kinds))
    for level, _ in optimisers():
        print(f"{level:9} " + " ".join(f"{counts[(level, kind)]:9}" for kind in kinds))
    decided = sum(n for (_, kind), n in counts.items() if kind in ("equal", "real"))
    print(f"decided {decided} of {sum(counts.values())}\n")
    return failures


def find_faults(arguments, program, folder):
    """Makes wrong rewrites, and has them found: failures."""
    found, missed, failures, seed = 0, 0, 0, arguments.first
    names = list(MODELS)
    while found + missed + failures < arguments.faults and seed < arguments.first + 40 * arguments.faults:
        seed += 1
        name, kind = names[seed % len(names)], Faults.KINDS[(seed // len(names)) % len(Faults.KINDS)]
        if arguments.only not in name:
            continue
        right = MODELS[name]()
        made = Faults(seed).make(right, kind)
        if made is None or not is_fault(right, made[0]):
            continue
        wrong, where = made
        paths = [folder / "right.onnx", folder / "wrong.onnx"]
        onnx.save(right, paths[0])
        onnx.save(wrong, paths[1])
        for real in (False, True):
            answer, seconds, said = verify(program, *paths, arguments.timeout, real)
            found += answer == "differ" and real
            missed += answer not in ("differ", "equal") and real
            failures += answer == "equal"
            way = "--real" if real else ""
            print(f"{seed:4} {name:12} {kind:18} {where[:24]:24} {way:6} {answer:10} {seconds:5.1f} s  {said[:120]}", flush=True)
    print(f"wrong rewrites: {found} found, {missed} not found, {failures} called equal")
    return failures + missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--binary")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--quantised", type=int, default=0)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--only-faults", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="the seed after which faults are made")
    arguments = parser.parse_args()
    program = arguments.binary or environment.binary()
    with tempfile.TemporaryDirectory() as folder:
        failures = 0 if arguments.only_faults else compare_optimised(arguments, program, Path(folder))
        failures += find_faults(arguments, program, Path(folder))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
