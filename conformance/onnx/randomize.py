#!/usr/bin/env python3
"""Gives ONNX's "light" models random weights of sane scale.

The light models are real networks whose weights are `ConstantOfShape` nodes (all but
a few small ones): every element of a weight is the same number. Under such weights a
transposed kernel or a wrong index changes nothing. Here each weight becomes a random
initialiser, drawn for what its consumers make of it (convolution kernel, bias, batch
norm scale, mean, variance, ...).

Scale is set by measurement, in the manner of layer-sequential unit-variance
initialisation (Mishkin and Matas, "All you need is a good init", 2016): the nodes are
run one after the other through ONNX Runtime on a random image, each kernel is drawn
with He's scale and then divided by the standard deviation that it produced, and a
batch norm gets the statistics that it saw, disturbed a little. A convolution with a
bias gets one that takes the channel's mean away, disturbed a little too (as Salimans
and Kingma do in "Weight Normalization", 2016): without it, images become more alike
with every relu, and a deep network ends up with the same logits for all of them. The
last layer is scaled so that the logits spread by about `LOGIT_STD`.

The tensor before a final `Softmax` becomes a graph output too: where the softmax
saturates, an error in the logits would not show in the probabilities.

`inspect` then runs the whole model and refuses weights under which it is insensitive:
activations that vanish, explode or are nearly all zero, or logits that hardly change
with another image, a mirrored one, or exchanged colour channels.
"""

import argparse
import os
import sys
import zlib
from pathlib import Path

if __name__ == "__main__":
    import environment

    environment.enter()

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SEED = 162
LOGIT_STD = 1.5


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    data = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def rng_for(*names):
    """A generator that depends on the names alone, not on the order of the calls."""
    return np.random.default_rng([SEED, *(zlib.crc32(str(name).encode()) for name in names)])


def graph_inputs(model):
    """The inputs that are not initialisers: name to a list of sizes."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input
        if value.name not in weights
    }


def image(shape, *names):
    """A random image: noise at four scales, so that neighbours resemble each other."""
    rng = rng_for("image", *names)
    out = np.zeros(shape)
    for step in (1, 4, 16, 56):
        rows, cols = -(-shape[2] // step), -(-shape[3] // step)
        coarse = rng.standard_normal((*shape[:2], rows, cols))
        out += coarse.repeat(step, 2).repeat(step, 3)[:, :, : shape[2], : shape[3]]
    return (out / out.std()).astype(np.float32)


def run_node(node, values, opset):
    """Runs one node through ONNX Runtime; returns its outputs by name."""
    present = [name for name in node.input if name]
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape
        )
        for name in dict.fromkeys(present)
    ]
    # A second output (Dropout's mask, say) is nothing that a later node reads here.
    outputs = [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "one", inputs, outputs)
    single = helper.make_model(graph, opset_imports=opset, ir_version=8)
    feed = {name: values[name] for name in present}
    return {node.output[0]: session(single).run([node.output[0]], feed)[0]}


class Randomizer:
    """Replaces the constant weights of one model; see the head of this file."""

    def __init__(self, model, name):
        self.model, self.name = model, name
        self.values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.shapes = {}  # weight to its shape
        for node in model.graph.node:
            if node.op_type == "ConstantOfShape" and node.input[0] in self.values:
                shape = [int(size) for size in self.values[node.input[0]]]
                self.shapes[node.output[0]] = shape
        read = {source for node in model.graph.node for source in node.input}
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and tensor.name in read:
                self.shapes[tensor.name] = list(tensor.dims)
        self.weight_of = {name: name for name in self.shapes}  # also of reshaped weights
        self.roles = self.find_roles()
        self.last = None  # kernel and bias of the last layer that has a kernel

    def find_roles(self):
        """What each weight is, from the nodes that read it."""
        by_input = {
            "Conv": {1: "kernel", 2: "bias"},
            "Gemm": {1: "kernel", 2: "bias"},
            "BatchNormalization": {1: "scale", 2: "bias", 3: "mean", 4: "variance"},
            "Mul": {0: "scale", 1: "scale"},
            "Add": {0: "bias", 1: "bias"},
        }
        roles = {}
        for node in self.model.graph.node:
            for position, source in enumerate(node.input):
                if source not in self.weight_of:
                    continue
                weight = self.weight_of[source]
                if node.op_type in ("Unsqueeze", "Reshape"):
                    self.weight_of[node.output[0]] = weight
                    continue
                role = by_input.get(node.op_type, {}).get(position)
                if role is None or roles.setdefault(weight, role) != role:
                    raise ValueError(
                        f"{self.name}: no rule for the weight {weight}, "
                        f"input {position} of {node.op_type}"
                    )
        unused = set(self.shapes) - set(roles)
        if unused:
            raise ValueError(f"{self.name}: nothing reads the weights {sorted(unused)}")
        return roles

    def draw(self, weight):
        """A first value for a weight, before anything was measured."""
        rng, shape = rng_for(self.name, weight), self.shapes[weight]
        role = self.roles[weight]
        if role == "kernel":
            value = rng.standard_normal(shape)
        elif role == "scale":
            value = rng.uniform(0.8, 1.2, shape)
        elif role == "variance":
            value = rng.uniform(0.8, 1.25, shape)
        else:  # bias, mean
            value = 0.1 * rng.standard_normal(shape)
        return value.astype(np.float32)

    def run(self):
        """Chooses every weight, running the network as far as it is known."""
        graph, opset = self.model.graph, self.model.opset_import
        for name, shape in graph_inputs(self.model).items():
            self.values[name] = image(shape, self.name)
        for weight in self.shapes:
            self.values[weight] = self.draw(weight)
        uses = {self.logits_name(): 1}
        for node in graph.node:
            for source in node.input:
                uses[source] = uses.get(source, 0) + 1
        for node in graph.node:
            if node.output[0] in self.shapes:
                continue
            if node.op_type in ("Conv", "Gemm"):
                self.set_kernel(node, opset)
            elif node.op_type == "BatchNormalization":
                self.set_statistics(node)
            self.values.update(run_node(node, self.values, opset))
            for source in node.input:  # activations that nobody reads again may go
                uses[source] -= 1
                if uses[source] == 0 and source not in self.shapes:
                    self.values.pop(source, None)
        self.set_logits()
        self.write_back()

    def set_kernel(self, node, opset):
        """He's scale, then unit variance at the output; a bias that centres channels.

        Where a channel has few elements (a gemm on one image: one), nothing is centred.
        """
        kernel = node.input[1]  # maybe a reshaped weight
        bias = node.input[2] if len(node.input) > 2 else None
        shape = self.values[kernel].shape
        if node.op_type == "Conv":
            fan_in = int(np.prod(shape[1:]))
        else:
            trans_b = any(a.name == "transB" and a.i for a in node.attribute)
            fan_in = shape[1 if trans_b else 0]
        trial = {name: self.values[name] for name in node.input}
        trial[kernel] = self.values[kernel] * np.float32(np.sqrt(2.0 / fan_in))
        if bias:
            trial[bias] = np.zeros_like(trial[bias])
        out = run_node(node, trial, opset)[node.output[0]].astype(np.float64)
        axes = (0, *range(2, out.ndim))
        mean = out.mean(axes, keepdims=True)
        centre = bias is not None and out.size >= 16 * mean.size
        measured = float((out - mean).std() if centre else out.std())
        self.values[kernel] = trial[kernel] / np.float32(measured)
        if centre:
            shift = (mean / measured).reshape(self.values[bias].shape)
            self.values[bias] = (self.values[bias] - shift).astype(np.float32)
        weight = self.weight_of[kernel]
        self.values[weight] = self.values[kernel].reshape(self.shapes[weight])
        self.last = (weight, self.weight_of[bias] if bias else None)

    def set_statistics(self, node):
        """Mean and variance near those of the input; half the channel's, half all channels'."""
        x = self.values[node.input[0]].astype(np.float64)
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        mean, variance = node.input[3], node.input[4]
        measured = 0.5 * x.var(axes) + 0.5 * x.var()
        self.values[mean] = (x.mean(axes) + self.values[mean]).astype(np.float32)
        self.values[variance] = (measured * self.values[variance]).astype(np.float32)

    def set_logits(self):
        """Scales the last kernel and bias for the wanted spread of the logits.

        What may follow them (relu, average pooling) commutes with a positive factor.
        """
        logits = self.values[self.logits_name()]
        factor = np.float32(LOGIT_STD / float(logits.std()))
        for weight in self.last:
            if weight:
                self.values[weight] *= factor

    def logits_name(self):
        """The input of a final softmax; without one, the output itself."""
        output = self.model.graph.output[0].name
        for node in self.model.graph.node:
            if node.op_type == "Softmax" and node.output[0] == output:
                return node.input[0]
        return output

    def write_back(self):
        """Initialisers in place of the constant nodes, and the logits as an output."""
        graph = self.model.graph
        gone = {node.input[0] for node in graph.node if node.output and node.output[0] in self.shapes}
        kept = [node for node in graph.node if node.output[0] not in self.shapes]
        gone -= {source for node in kept for source in node.input}
        gone |= set(self.shapes)
        initializers = [t for t in graph.initializer if t.name not in gone]
        inputs = [v for v in graph.input if v.name not in gone]
        for weight, shape in self.shapes.items():
            initializers.append(numpy_helper.from_array(self.values[weight], weight))
            if self.model.ir_version < 4:  # initialisers are listed as inputs there
                inputs.append(helper.make_tensor_value_info(weight, TensorProto.FLOAT, shape))
        logits = self.logits_name()
        if logits != graph.output[0].name:
            shape = self.values[logits].shape
            graph.output.append(helper.make_tensor_value_info(logits, TensorProto.FLOAT, shape))
        for current, new in (
            (graph.node, kept),
            (graph.initializer, initializers),
            (graph.input, inputs),
        ):
            del current[:]
            current.extend(new)


def inspect(model, name):
    """Runs the whole model on several images; raises ValueError where it is degenerate.

    Returns measures that describe it, for people to look at.
    """
    logits = model.graph.output[-1].name
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    known = {output.name for output in model.graph.output}
    activations = [n.output[0] for n in model.graph.node if n.output[0] not in known]
    weights = {t.name for t in model.graph.initializer}
    reshaped = {n.output[0] for n in model.graph.node if n.input[0] in weights}
    activations = [a for a in activations if a not in reshaped]
    for activation in activations:
        probe.graph.output.append(helper.make_tensor_value_info(activation, TensorProto.FLOAT, None))
    run = session(probe).run
    [(source, shape)] = graph_inputs(model).items()
    first = image(shape, name)
    everything = run([logits, *activations], {source: first})
    base = everything[0].astype(np.float64).ravel()
    spreads = [float(a.std()) for a in everything]
    zeros = max(float((a == 0).mean()) for a in everything)
    changes = {}
    for how, other in (
        ("another image", image(shape, name, "other")),
        ("mirrored", np.ascontiguousarray(first[..., ::-1])),
        ("upside down", np.ascontiguousarray(first[..., ::-1, :])),
        ("colours exchanged", np.ascontiguousarray(first[:, ::-1])),
    ):
        changed = run([logits], {source: other})[0].astype(np.float64).ravel()
        change = np.sqrt(((changed - base) ** 2).mean())
        changes[how] = float(change / max(base.std(), 1e-30))
    problems = []
    if not all(np.isfinite(a).all() for a in everything):
        problems.append("an activation is not finite")
    if min(spreads) < 1e-2 or max(spreads) > 1e2:
        problems.append(f"activations spread by {min(spreads):.1e} to {max(spreads):.1e}")
    if zeros > 0.97:
        problems.append(f"an activation is zero in {100 * zeros:.0f} % of its elements")
    if not 0.3 < base.std() < 5:
        problems.append(f"the logits spread by {base.std():.1e}")
    for how, change in changes.items():
        if change < 0.1:
            problems.append(f"{how}: the logits change by only {change:.1e} of their spread")
    if problems:
        raise ValueError(f"{name} is degenerate: " + "; ".join(problems))
    return {
        "activation_std": [min(spreads), max(spreads)],
        "most_zeros": zeros,
        "logits_std": float(base.std()),
        "change": changes,
    }


def randomize(source, target, external=False):
    """Writes the light model `source` with random weights to `target`.

    With `external`, the weights go to a file beside it. Returns `inspect`'s measures.
    """
    model, name = onnx.load(source), Path(source).stem
    Randomizer(model, name).run()
    measures = inspect(model, name)
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if external:
        beside = target.stem + ".weights"
        (target.parent / beside).unlink(missing_ok=True)  # onnx appends to such a file
        onnx.save_model(
            model, target, save_as_external_data=True, location=beside, size_threshold=0
        )
    else:
        unfinished = target.with_suffix(".unfinished")
        onnx.save_model(model, unfinished)
        os.replace(unfinished, target)
    return measures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a light model")
    parser.add_argument("target", type=Path, help="the file to write")
    parser.add_argument("--external", action="store_true", help="weights in a file of their own")
    args = parser.parse_args()
    measures = randomize(args.source, args.target, args.external)
    for key, value in measures.items():
        print(f"{key}: {value}", file=sys.stderr)


if __name__ == "__main__":
    main()
