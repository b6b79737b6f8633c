#!/usr/bin/env python3
"""Decoders as onnxruntime-genai's builder and Optimum write them, against ONNX Runtime, at several lengths.

    decoders.py [--only SUBSTRING] [--binary PROGRAM]

The graphs are made here, with random weights and sizes that are multiples of nothing: the operators, their
order and the names of their dimensions are those of the builder, or of an export by Optimum: there rotations, repeated
heads and masks are made of plain operators, and a cache grows by `Concat`. Each model is compiled once with its
sizes open for each run: a prompt, one token behind it, several, and a batch with examples of different lengths.
What ONNX Runtime has no kernels for in bf16 is computed there in f32, with weights of that precision.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import environment

environment.enter()

import harness  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MICROSOFT = "com.microsoft"
KINDS = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
NUMBERS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

LLAMA = {
    "layers": 2,
    "heads": 6,
    "shared": 2,
    "size": 16,
    "inner": 172,
    "words": 173,
    "kind": "f32",
    "bits": 4,
    "block": 32,
    "level": 0,
    "zeros": "",  # zero points: packed, or floats
    "order": False,  # g_idx, the block of each row of weights
    "packed": False,
    "bias": False,
    "norms": False,
    "window": -1,
    "softcap": 0.0,
    "logit_cap": 0.0,
    "rotary": 16,
    "interleaved": 0,
    "attention": "grouped",
    "mlp": "silu",
    "norm": "root",
    "embedding": "gather",
    "scale": None,
    "shared_buffer": False,
    "experts": 0,
    "coarse": False,  # numbers of bf16 as f32
}

# Each a family of models by what differs in it.
MODELS = {
    "llama": {},
    "llama_f16": {"kind": "f16"},
    "llama_float_weights": {"bits": 0},
    "llama_f16_float_weights": {"bits": 0, "kind": "f16"},
    "llama_8_bits": {"bits": 8, "block": 16},
    "llama_blocks_of_128": {"block": 128, "zeros": "packed"},
    "llama_level_4": {"level": 4, "block": 64, "zeros": "packed"},
    "llama_shared_buffer": {"shared_buffer": True},
    "qwen2": {"bias": True, "block": 16, "zeros": "packed"},
    "qwen2_packed": {"bias": True, "packed": True, "heads": 7, "shared": 1},
    "qwen3": {"norms": True, "size": 48, "rotary": 48, "heads": 5, "shared": 5},
    "phi2": {"rotary": 8, "attention": "heads", "norm": "layer", "mlp": "gelu", "bias": True, "shared": 6},
    "phi3": {"packed": True, "window": 5, "mlp": "joined"},
    "phi4": {"packed": True, "size": 32, "rotary": 16, "mlp": "joined"},
    "gemma": {"mlp": "gelu_gated", "scale": 9.8, "shared": 1, "embedding": "scaled"},
    "gemma2": {"mlp": "gelu_gated", "softcap": 5.0, "logit_cap": 3.0, "window": 4, "embedding": "scaled"},
    "mistral": {"window": 3, "interleaved": 1},
    "gathered_blocks": {"embedding": "blocks"},
    "heads_of_their_own": {"attention": "heads", "shared": 6},
    "mixture": {"experts": 3},
    "float_zeros": {"zeros": "float", "block": 16},
    # Without zero points: ONNX Runtime takes them for 8 where rows have an order.
    "order_of_rows": {"order": True, "block": 16, "size": 32, "inner": 176},
    "llama_2_bits": {"bits": 2, "zeros": "packed"},
    "llama_2_bits_level_4": {"bits": 2, "level": 4},
    "odd": {"heads": 3, "shared": 3, "inner": 171, "words": 151, "bias": True, "zeros": "packed", "block": 16},
    "odd_level_4": {"heads": 3, "shared": 1, "inner": 171, "words": 151, "level": 4},
    "llama_bf16": {"kind": "bf16"},
    "llama_bf16_float_weights": {"kind": "bf16", "bits": 0},
    "optimum": {"attention": "plain", "bits": 0},
    "optimum_norms": {"attention": "plain", "bits": 0, "norms": True, "norm": "parts"},
    "optimum_f16": {"attention": "plain", "bits": 0, "kind": "f16"},
    "optimum_4_bits": {"attention": "plain", "shared": 3, "bias": True},
    "optimum_one_head": {"attention": "plain", "shared": 1, "bits": 8, "mlp": "gelu", "norm": "layer"},
}


class Decoder:
    """One decoder, node by node."""

    def __init__(self, **choices):
        for key, value in {**LLAMA, **choices}.items():
            setattr(self, key, value)
        self.random = np.random.default_rng(3)
        self.nodes, self.weights, self.count = [], [], 0
        self.hidden = self.heads * self.size

    def constant(self, value):
        self.count += 1
        name = f"w{self.count}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def numbers(self, values):
        values = values.astype(ml_dtypes.bfloat16) if self.coarse else values
        return values.astype(NUMBERS[self.kind])

    def floats(self, *shape, scale=0.2, base=0.0):
        return self.constant(self.numbers(base + self.random.standard_normal(shape) * scale))

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        self.count += 1
        names = [f"v{self.count}"] + [f"v{self.count}_{k}" for k in range(1, outputs)]
        node = helper.make_node(kind, list(inputs), names, domain=domain, **attributes)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def linear(self, x, rows, columns, bias=None):
        bias = self.bias if bias is None else bias
        if not self.bits:
            y = self.op("MatMul", x, self.floats(rows, columns, scale=rows**-0.5))
        else:
            blocks = -(-rows // self.block)
            packed = self.random.integers(0, 256, (columns, blocks, self.block * self.bits // 8), np.uint8)
            scale = {2: 0.4, 4: 0.1, 8: 0.006}[self.bits] * rows**-0.5
            scales = self.numbers(self.random.uniform(0.5, 2, columns * blocks) * scale)
            operands = [x, self.constant(packed), self.constant(scales)]
            if self.zeros == "packed":
                each = -(-blocks * self.bits // 8)
                operands.append(self.constant(self.random.integers(100, 156, columns * each, np.uint8)))
            elif self.zeros:
                middle = 1 << (self.bits - 1)
                zeros = middle + self.random.uniform(-1.5, 1.5, columns * blocks)
                operands.append(self.constant(self.numbers(zeros)))
            if self.order:
                order = self.random.permutation(np.arange(rows) // self.block).astype(np.int32)
                operands += [""] * (4 - len(operands)) + [self.constant(order)]
            sizes = {"K": rows, "N": columns, "bits": self.bits, "block_size": self.block}
            y = self.op("MatMulNBits", *operands, domain=MICROSOFT, accuracy_level=self.level, **sizes)
        return self.op("Add", y, self.floats(columns)) if bias else y

    def start(self, x, before):
        """The normalised sum of two values, and the sum."""
        scale = self.floats(self.hidden, base=1.0)
        if self.attention == "plain":
            x = x if before is None else self.op("Add", before, x)
            if self.norm == "layer":
                return self.op("LayerNormalization", x, scale, self.floats(self.hidden), axis=-1, epsilon=1e-5), x
            if self.norm == "root":
                return self.op("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=1e-6, stash_type=1), x
            square = self.op("Pow", x, self.constant(NUMBERS[self.kind](2)))
            mean = self.op("ReduceMean", square, self.constant(np.array([-1])), keepdims=1)
            root = self.op("Sqrt", self.op("Add", mean, self.constant(NUMBERS[self.kind](1e-6))))
            less = self.op("Mul", x, self.op("Div", self.constant(NUMBERS[self.kind](1)), root))
            return self.op("Mul", scale, less), x
        if self.norm == "layer":
            bias = self.floats(self.hidden)
            if before is None:
                return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5), x
            names = self.op(
                "SkipLayerNormalization", x, before, scale, bias, outputs=4, domain=MICROSOFT, epsilon=1e-5
            )
        elif before is None:
            return self.op("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=1e-6, stash_type=1), x
        else:
            names = self.op(
                "SkipSimplifiedLayerNormalization", x, before, scale, outputs=4, domain=MICROSOFT, epsilon=1e-6
            )
        self.nodes[-1].output[1] = self.nodes[-1].output[2] = ""
        return names[0], names[3]

    def normed_heads(self, x, heads):
        """Each head normalised by itself, as Qwen3 has it."""
        shape = [0, -1, heads, self.size]
        x = self.op("Reshape", x, self.constant(np.array([0, -1, self.size])))
        x = self.op("SimplifiedLayerNormalization", x, self.floats(self.size, base=1.0), axis=-1, epsilon=1e-6)
        del shape
        return self.op("Reshape", x, self.constant(np.array([0, -1, heads * self.size])))

    def mixed(self, x, at):
        heads, shared, size = self.heads, self.shared, self.size
        widths = [heads * size, shared * size, shared * size]
        if self.packed:
            q, k, v = self.linear(x, self.hidden, sum(widths)), "", ""
        else:
            q, k, v = (self.linear(x, self.hidden, width) for width in widths)
        if self.norms:
            q, k = self.normed_heads(q, heads), self.normed_heads(k, shared)
        past = [f"past_key_values.{at}.{kind}" for kind in ("key", "value")]
        present = [f"present.{at}.{kind}" for kind in ("key", "value")]
        if self.attention == "plain":
            return self.plain(q, k, v, past, present)
        angles = np.arange(64)[:, None] / 100 ** (np.arange(self.rotary // 2) / (self.rotary // 2))
        cos, sin = (self.constant(self.numbers(f(angles))) for f in (np.cos, np.sin))
        if self.attention == "grouped":
            operands = [q, k, v, *past, "seqlens_k", "total", cos, sin]
            attributes = {"num_heads": heads, "kv_num_heads": shared, "local_window_size": self.window}
            attributes |= {"do_rotary": 1, "rotary_interleaved": self.interleaved, "softcap": self.softcap}
            kind = "GroupQueryAttention"
        else:
            partial = {"rotary_embedding_dim": self.rotary, "num_heads": heads} if self.rotary < size else {}
            q, k = (
                self.op("RotaryEmbedding", x, "position_ids", cos, sin, domain=MICROSOFT, **partial) for x in (q, k)
            )
            operands = [q, k, v, "", "", "bias", *past]
            attributes = {"num_heads": heads}
            kind = "MultiHeadAttention"
        if self.scale is not None:
            attributes["scale"] = 1 / self.scale
        self.count += 1
        name = f"mixed{self.count}"
        node = helper.make_node(kind, operands, [name, *present], domain=MICROSOFT, **attributes)
        self.nodes.append(node)
        return self.linear(name, heads * size, self.hidden)

    def plain(self, q, k, v, past, present):
        """Attention of plain operators: rotated heads, a cache that is joined, and repeated keys and values."""
        heads, shared, size = self.heads, self.shared, self.size

        def parts(x, count):
            x = self.op("Reshape", x, self.constant(np.array([0, 0, count, size])))
            return self.op("Transpose", x, perm=[0, 2, 1, 3])

        def turned(x):
            half = self.constant(np.array([size // 2]))
            ends = [self.constant(np.array([n])) for n in (0, 2**63 - 1, 3)]
            first = self.op("Slice", x, ends[0], half, ends[2])
            second = self.op("Slice", x, half, ends[1], ends[2])
            other = self.op("Concat", self.op("Neg", second), first, axis=-1)
            return self.op("Add", self.op("Mul", x, self.cos), self.op("Mul", other, self.sin))

        def joined(old, new, name):
            self.nodes.append(helper.make_node("Concat", [old, new], [name], axis=2))
            return name

        def repeated(x):
            if heads == shared:
                return x
            shape = self.op("Shape", x)
            batch, keys = (self.op("Gather", shape, self.constant(np.array([k]))) for k in (0, 2))
            one, wide = (self.constant(np.array([n])) for n in (shared, heads // shared))
            last, whole = self.constant(np.array([size])), self.constant(np.array([heads]))
            x = self.op("Unsqueeze", x, self.constant(np.array([2])))
            x = self.op("Expand", x, self.op("Concat", batch, one, wide, keys, last, axis=0))
            return self.op("Reshape", x, self.op("Concat", batch, whole, keys, last, axis=0))

        q, k, v = turned(parts(q, heads)), turned(parts(k, shared)), parts(v, shared)
        k, v = (joined(*three) for three in zip(past, (k, v), present))
        k, v = repeated(k), repeated(v)
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.constant(NUMBERS[self.kind](size**-0.5)))
        weights = self.op("Softmax", self.op("Add", scores, "bias"), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        mixed = self.op("Reshape", mixed, self.constant(np.array([0, 0, heads * size])))
        return self.linear(mixed, heads * size, self.hidden)

    def rotations(self):
        """Cosines and sines of the positions, from the positions."""
        rates = 100 ** -(np.arange(self.size // 2) / (self.size // 2))
        rates = self.constant(rates.astype(np.float32)[None, :, None])
        positions = self.op("Cast", self.op("Unsqueeze", "position_ids", self.constant(np.array([1]))), to=1)
        angles = self.op("Transpose", self.op("MatMul", rates, positions), perm=[0, 2, 1])
        angles = self.op("Concat", angles, angles, axis=-1)
        both = (self.op("Cast", self.op(kind, angles), to=KINDS[self.kind]) for kind in ("Cos", "Sin"))
        self.cos, self.sin = (self.op("Unsqueeze", x, self.constant(np.array([1]))) for x in both)

    def bent(self, x):
        """What a layer computes of each token."""
        hidden, inner = self.hidden, self.inner
        if self.experts:
            return self.mixture(x)
        if self.mlp == "gelu":
            y = self.op("FastGelu", self.linear(x, hidden, inner), domain=MICROSOFT)
            return self.linear(y, inner, hidden)
        if self.mlp == "joined":
            both = self.linear(x, hidden, 2 * inner)
            halves = self.constant(np.array([inner, inner]))
            gate, up = self.op("Split", both, halves, outputs=2, axis=-1)
        else:
            gate, up = (self.linear(x, hidden, inner) for _ in range(2))
        if self.mlp == "gelu_gated":
            gate = self.op("Gelu", gate, approximate="tanh")
        else:
            gate = self.op("Mul", gate, self.op("Sigmoid", gate))
        return self.linear(self.op("Mul", gate, up), inner, hidden)

    def mixture(self, x):
        """Experts with weights of 4 bits, two of them for each token."""
        hidden, inner, experts = self.hidden, 80, self.experts
        flat = self.op("Reshape", x, self.constant(np.array([-1, hidden])))
        router = self.op("MatMul", flat, self.floats(hidden, experts))

        def weights(rows, columns):
            packed = self.random.integers(0, 256, (experts, rows, columns // 2), np.uint8)
            scales = self.random.uniform(0.5, 2, (experts, rows)) * 0.1 * columns**-0.5
            return [self.constant(packed), self.constant(scales.astype(NUMBERS[self.kind]))]

        operands = [x, router, *weights(inner, hidden), "", *weights(hidden, inner)]
        choices = {"k": 2, "activation_type": "silu", "expert_weight_bits": 4, "normalize_routing_weights": 1}
        return self.op("QMoE", *operands, domain=MICROSOFT, **choices)

    def embedded(self):
        if self.embedding == "blocks":
            data = self.random.integers(0, 256, (self.words, self.hidden // 2), np.uint8)
            blocks = -(-self.hidden // 32)
            scales = self.random.uniform(0.05, 0.2, (self.words, blocks)).astype(NUMBERS[self.kind])
            sizes = {"bits": 4, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}
            return self.op(
                "GatherBlockQuantized", self.constant(data), "input_ids", self.constant(scales), domain=MICROSOFT, **sizes
            )
        x = self.op("Gather", self.floats(self.words, self.hidden, scale=1.0), "input_ids")
        if self.embedding == "scaled":
            x = self.op("Mul", x, self.constant(NUMBERS[self.kind](self.hidden**0.5)))
        return x

    def masks(self):
        """The lengths that GroupQueryAttention takes, from the mask."""
        sums = self.op("ReduceSum", "attention_mask", self.constant(np.array([1])), keepdims=0)
        less = self.op("Sub", sums, self.constant(np.array([1])))
        total = self.op("Gather", self.op("Shape", "attention_mask"), self.constant(np.array(1)), axis=0)
        for name, value in (("seqlens_k", less), ("total", total)):
            self.nodes.append(helper.make_node("Cast", [value], [name], to=TensorProto.INT32))

    def causal_bias(self):
        """What MultiHeadAttention adds to the scores: from the mask and the positions, as exporters write it."""
        least = NUMBERS[self.kind](np.finfo(NUMBERS[self.kind]).min)
        zero = NUMBERS[self.kind](0)

        def length(of, axis):
            return self.op("Gather", self.op("Shape", of), self.constant(np.array(axis)), axis=0)

        def listed(value):
            return self.op("Unsqueeze", value, self.constant(np.array([0])))

        rows, all_keys = length("input_ids", 1), length("attention_mask", 1)
        past = self.op("Sub", all_keys, rows)
        keys = self.op("Range", self.constant(np.array(0)), all_keys, self.constant(np.array(1)))
        own = self.op("Range", past, all_keys, self.constant(np.array(1)))
        own = self.op("Reshape", own, self.constant(np.array([-1, 1])))
        causal = self.op("Where", self.op("Greater", keys, own), self.constant(least), self.constant(zero))
        causal = self.op("Unsqueeze", causal, self.constant(np.array([0, 1])))
        shape = self.op("Concat", listed(length("input_ids", 0)), self.constant(np.array([1])), listed(rows), listed(all_keys), axis=0)
        causal = self.op("Expand", causal, shape)
        mask = self.op("Unsqueeze", "attention_mask", self.constant(np.array([1, 2])))
        padded = self.op("Equal", mask, self.constant(np.array(0)))
        self.nodes.append(helper.make_node("Where", [padded, self.op("Identity", self.constant(least)), causal], ["bias"]))

    def model(self):
        info, kind = helper.make_tensor_value_info, KINDS[self.kind]
        integers = TensorProto.INT64
        inputs = [info("input_ids", integers, ["batch_size", "sequence_length"])]
        inputs.append(info("attention_mask", integers, ["batch_size", "total_sequence_length"]))
        if self.attention == "grouped":
            self.masks()
        else:
            inputs.append(info("position_ids", integers, ["batch_size", "sequence_length"]))
            self.causal_bias()
            if self.attention == "plain":
                self.rotations()
        x, outputs = self.embedded(), []
        before = None
        for at in range(self.layers):
            for name in ("key", "value"):
                shape = ["batch_size", self.shared, "past_sequence_length", self.size]
                inputs.append(info(f"past_key_values.{at}.{name}", kind, shape))
                shape = ["batch_size", self.shared, "total_sequence_length", self.size]
                outputs.append(info(f"present.{at}.{name}", kind, shape))
            y, x = self.start(x, before)
            before = self.mixed(y, at)
            y, x = self.start(x, before)
            before = self.bent(y)
        y, _ = self.start(x, before)
        y = self.linear(y, self.hidden, self.words, bias=False)
        if self.logit_cap:
            cap = self.constant(NUMBERS[self.kind](self.logit_cap))
            y = self.op("Mul", self.op("Tanh", self.op("Div", y, cap)), cap)
        self.nodes.append(helper.make_node("Cast", [y], ["logits"], to=TensorProto.FLOAT))
        outputs.insert(0, info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", self.words]))
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def feeds(self, lengths, new):
        """Inputs: for each example so many tokens of before, and `new` behind them."""
        batch, past = len(lengths), max(lengths)
        longest = 24 if self.shared_buffer else past
        random = np.random.default_rng(5)
        feeds = {"input_ids": random.integers(0, self.words, (batch, new))}
        mask = np.zeros((batch, past + new), np.int64)
        left = self.attention != "grouped"
        for row, length in zip(mask, lengths):
            if left:
                row[past - length :] = 1
            else:
                row[: length + new] = 1
        feeds["attention_mask"] = mask
        if left:
            positions = np.maximum(np.cumsum(mask, 1) - 1, 0)
            feeds["position_ids"] = positions[:, past:]
        for at in range(self.layers):
            for name in ("key", "value"):
                cache = random.standard_normal((batch, self.shared, longest, self.size))
                if not left:
                    for rows, length in zip(cache, lengths):
                        rows[:, length:] = 0
                feeds[f"past_key_values.{at}.{name}"] = self.numbers(cache)
        return feeds


RUNS = {
    "prompt": ([0], 7),
    "token": ([11], 1),
    "several": ([5], 4),
    "batch": ([3, 3], 1),
    "unequal": ([9, 4, 6], 1),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--binary")
    arguments = parser.parse_args()
    program = Path(arguments.binary or environment.binary()).resolve()
    failures = 0
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        for name, choices in MODELS.items():
            if arguments.only not in name:
                continue
            decoder = reference = Decoder(**choices)
            path = Path(folder) / f"{name}.onnx"
            model = decoder.model()
            onnx.save(model, path)
            if decoder.kind == "bf16":
                reference = Decoder(**{**choices, "kind": "f32", "coarse": True})
                model = reference.model()
            try:
                session = onnxruntime.InferenceSession(
                    model.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
            except Exception as e:
                print(f"{name:24} ONNX Runtime: {str(e).splitlines()[0][:200]}")
                continue
            names = [o.name for o in session.get_outputs()]
            for run in arguments.runs.split(","):
                feeds = decoder.feeds(*RUNS[run])
                try:
                    expected = dict(zip(names, session.run(None, reference.feeds(*RUNS[run]))))
                except Exception as e:
                    print(f"{name:24} {run:9} ONNX Runtime: {str(e).splitlines()[0][:150]}")
                    continue
                inputs = Path(folder) / "in.npz"
                harness.save_npz(inputs, feeds)
                outcome = harness.run(program, path, inputs, options=["--open"])
                said = outcome.reason
                if outcome.status == "ok":
                    tolerance = 3e-2 if decoder.kind == "f16" or decoder.level == 4 else 2e-3
                    tolerance = 1e-1 if decoder.kind == "bf16" else tolerance
                    worst = 0.0
                    for key, value in expected.items():
                        actual = outcome.outputs.get(key)
                        if decoder.kind == "bf16" and key != "logits":
                            # A file of NumPy has no name for the type.
                            actual, value = actual.view(ml_dtypes.bfloat16).astype(np.float32), value.astype(np.float32)
                        d = harness.difference(actual, value, tolerance, tolerance)
                        worst = max(worst, d.relative)
                        if d.problem or d.relative > tolerance:
                            said = said or f"{key}: {d.problem} {d.relative:.1e}"
                    said = said or f"agrees within {worst:.1e}"
                failures += not said.startswith("agrees")
                print(f"{name:24} {run:9} {outcome.wall:5.1f} s {outcome.status:8} {said[:300]}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
