"""Tests of the scripts themselves: `.venv/bin/python -m unittest` in this folder."""

import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

import harness
import nodes
import randomize


def program(folder, body):
    """A stand-in for the program: a Python script that gets the arguments as `args`."""
    path = Path(folder) / "program"
    path.write_text(f"#!{sys.executable}\nimport sys\nargs = sys.argv[1:]\n{body}\n")
    path.chmod(0o755)
    return path


def one_node_model(op, inputs, outputs, **attributes):
    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    node = helper.make_node(op, list(inputs), list(outputs), **attributes)
    values = [[value(n, s) for n, s in part.items()] for part in (inputs, outputs)]
    return helper.make_model(helper.make_graph([node], "g", *values))


class Difference(unittest.TestCase):
    def test_relative_error_is_of_the_largest_value(self):
        expected = np.array([1.0, -10.0, 0.1], np.float32)
        found = harness.difference(expected + np.float32(0.009), expected, 1e-3, 0)
        self.assertAlmostEqual(found.relative, 9e-4, places=6)
        self.assertEqual(found.outside, 2)

    def test_not_finite_values(self):
        expected = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
        self.assertEqual(harness.difference(expected, expected, 1e-3, 0).problem, "")
        for place, value in ((0, 1.0), (1, 1.0), (1, -np.inf), (3, np.nan), (3, np.inf)):
            actual = expected.copy()
            actual[place] = value
            found = harness.difference(actual, expected, 1e-3, 0)
            self.assertEqual(found.outside, 1, (place, value))
            self.assertEqual(found.relative, np.inf)

    def test_integers_are_exact(self):
        expected = np.array([2**62, 5])
        found = harness.difference(expected + np.array([1, 0]), expected, 1e-3, 1.0)
        self.assertEqual(found.outside, 1)
        found = harness.difference(np.array([True]), np.array([False]), 1e-3, 1.0)
        self.assertEqual(found.outside, 1)

    def test_dtype_and_shape(self):
        expected = np.zeros((2, 3), np.float32)
        self.assertIn("dtype", harness.difference(np.zeros((2, 3)), expected, 1, 1).problem)
        found = harness.difference(np.zeros((3, 2), np.float32), expected, 1, 1)
        self.assertIn("shape [3, 2]", found.problem)

    def test_empty_and_scalar(self):
        empty = np.zeros((0, 3), np.float32)
        self.assertEqual(harness.difference(empty, empty, 0, 0).problem, "")
        one, two = np.asarray(np.float32(1)), np.asarray(np.float32(2))
        self.assertEqual(harness.difference(one, two, 1e-3, 0).outside, 1)


class Text(unittest.TestCase):
    def test_timing(self):
        said = "import 1.5 ms\n\x1b[1mcompile: 2.25 s\x1b[0m\nrun: median 340 µs, spread 12us"
        found = harness.parse_timing(said)
        self.assertEqual(
            {k: round(v, 9) for k, v in found.items()},
            {"import": 0.0015, "compile": 2.25, "median": 0.00034, "spread": 0.000012},
        )
        self.assertEqual(harness.parse_timing("compiled 53 functions"), {})

    def test_diagnostic(self):
        self.assertEqual(harness.diagnostic("  × no such op\n   ╭─[a.py:1]"), "no such op")
        self.assertEqual(harness.diagnostic("note: x\nerror: it is bad"), "it is bad")
        panic = "thread 'main' panicked at src/a.rs:1:2:\nindex out of bounds"
        self.assertIn("index out of bounds", harness.diagnostic(panic))

    def test_operators_and_exceptions(self):
        claimed = nodes.claimed_operators("Add 7 28\n# note\nRelu\n")
        self.assertEqual(claimed["Add"], (7, 28))
        self.assertEqual(claimed["Relu"][0], 1)
        with self.assertRaisesRegex(ValueError, "line 1"):
            nodes.claimed_operators("Add seven\n")
        self.assertEqual(nodes.read_exceptions("a*  why so\n"), [("a*", "why so")])
        with self.assertRaisesRegex(ValueError, "no reason"):
            nodes.read_exceptions("a*\n")
        self.assertEqual(nodes.read_tolerances("a* 1e-3 0 why so\n"), [("a*", 1e-3, 0.0)])
        with self.assertRaisesRegex(ValueError, "no reason"):
            nodes.read_tolerances("a* 1e-3 0\n")

    def test_values_that_are_no_arrays(self):
        value = helper.make_tensor_value_info("s", TensorProto.FLOAT, None)
        one = np.ones(1, np.float32)
        self.assertEqual(list(nodes.tensors(value, [one, one])), ["s.0", "s.1"])
        self.assertEqual(nodes.tensors(value, None), {})
        texts = nodes.in_npz(np.array([["né", ""]], object))
        self.assertEqual((texts.shape, texts.dtype), ((1, 2, 3), np.uint8))
        self.assertEqual(bytes(texts[0, 0]), "né".encode())
        self.assertEqual(nodes.in_npz(np.array([], object)).shape, (0, 1))
        inner = helper.make_tensor_type_proto(TensorProto.INT8, [2])
        listed = helper.make_optional_type_proto(helper.make_sequence_type_proto(inner))
        self.assertEqual(nodes.tensor_type(listed).elem_type, TensorProto.INT8)


class Run(unittest.TestCase):
    def outcome(self, body, **options):
        with tempfile.TemporaryDirectory() as folder:
            return harness.run(program(folder, body), "model.onnx", None, **options)

    def test_exit_codes(self):
        found = self.outcome("print('error: cannot', file=sys.stderr); sys.exit(2)")
        self.assertEqual((found.status, found.reason), ("refused", "cannot"))
        self.assertEqual(self.outcome("sys.exit(101)").status, "crashed")
        self.assertIn("signal 9", self.outcome("import os; os.kill(os.getpid(), 9)").reason)
        self.assertEqual(self.outcome("pass").status, "crashed")  # no output was written
        slow = self.outcome("import time; time.sleep(9)", timeout=0.2)
        self.assertEqual(slow.status, "timeout")

    def test_names_that_numpy_cannot_save(self):
        with tempfile.TemporaryDirectory() as folder:
            tensors = {"file": np.ones(2), "gpu_0/data:0": np.zeros((), np.int64)}
            harness.save_npz(Path(folder) / "a.npz", tensors)
            back = harness.load_npz(Path(folder) / "a.npz")
        self.assertEqual(list(back), list(tensors))
        self.assertEqual(back["gpu_0/data:0"].shape, ())


class Nodes(unittest.TestCase):
    def test_selection_by_opset(self):
        model = one_node_model("Relu", {"x": [2]}, {"y": [2]})
        model.opset_import[0].version = 14
        self.assertEqual(nodes.rejected(model, {"Relu": (9, 14)}), "")
        self.assertEqual(nodes.rejected(model, {"Relu": (9, 13)}), "opset not claimed")
        self.assertEqual(nodes.rejected(model, {"Add": (9, 14)}), "operator not claimed")

    def test_statuses(self):
        """A refusal is told from a failure, exceptions apply, and a stale one shows."""
        model = one_node_model("Reshape", {"x": [2], "s": [1]}, {"y": [2]})
        tensors = {"x": np.zeros(2, np.float32), "s": np.array([2])}
        case = nodes.NodeCase(
            "test_it", model, tensors, {"y": np.zeros(2, np.float32)}, 0, 0, ["Reshape"], "other"
        )
        refuse = "print('error: not a constant', file=sys.stderr); sys.exit(2)"
        right = (
            "import numpy as np\n"
            "np.savez(args[args.index('--output') + 1], y=np.zeros(2, np.float32))"
        )

        def status(body, exceptions=(), tolerances=()):
            with tempfile.TemporaryDirectory() as folder:
                nodes.environment.WORK, before = Path(folder), nodes.environment.WORK
                try:
                    ran = program(folder, body)
                    return nodes.judge(ran, case, exceptions, 60, tolerances).status
                finally:
                    nodes.environment.WORK = before

        self.assertEqual(status(right), "pass")
        self.assertEqual(status(refuse), "refused")
        self.assertEqual(status(right.replace("zeros", "ones")), "failed")
        self.assertEqual(status(refuse, [("test_*", "because")]), "excepted")
        self.assertEqual(status(right, [("test_*", "because")]), "stale")
        near = right.replace("zeros(2", "full(2, 0.5")
        self.assertEqual(status(near), "failed")
        self.assertEqual(status(near, (), [("test_*", 0.0, 1.0)]), "wider")


class Randomize(unittest.TestCase):
    def model(self):
        """A light model in small: conv, batch norm, relu, gemm, softmax, constant weights."""
        shapes = {
            "k": [5, 3, 3, 3], "scale": [5], "bias": [5], "mean": [5], "var": [5],
            "w": [40, 500], "b": [40],
        }  # fmt: skip
        make = helper.make_node
        constants = [make("ConstantOfShape", [f"{name}_shape"], [name]) for name in shapes]
        layers = [
            make("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
            make("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
            make("Relu", ["n"], ["r"]),
            make("Flatten", ["r"], ["f"]),
            make("Gemm", ["f", "w", "b"], ["logits"], transB=1),
            make("Softmax", ["logits"], ["y"]),
        ]
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [*constants, *layers],
            "small",
            [value("x", TensorProto.FLOAT, [1, 3, 10, 10])],
            [value("y", TensorProto.FLOAT, [1, 40])],
            [
                onnx.numpy_helper.from_array(np.array(shape), f"{name}_shape")
                for name, shape in shapes.items()
            ],
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8
        )

    def test_weights_become_random_and_sane(self):
        model = self.model()
        with self.assertRaisesRegex(ValueError, "degenerate"):
            randomize.inspect(model, "small")
        randomize.Randomizer(model, "small").run()
        self.assertNotIn("ConstantOfShape", {node.op_type for node in model.graph.node})
        self.assertEqual([o.name for o in model.graph.output], ["y", "logits"])
        weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
        self.assertEqual(set(weights), {"k", "scale", "bias", "mean", "var", "w", "b"})
        self.assertTrue((weights["var"] > 0).all())
        measures = randomize.inspect(model, "small")
        self.assertAlmostEqual(measures["logits_std"], randomize.LOGIT_STD, places=3)

    def test_same_weights_every_time(self):
        first, second = self.model(), self.model()
        randomize.Randomizer(first, "small").run()
        randomize.Randomizer(second, "small").run()
        self.assertEqual(first.SerializeToString(), second.SerializeToString())

    def test_a_weight_without_a_rule_is_an_error(self):
        model = self.model()
        model.graph.node.append(helper.make_node("Neg", ["bias"], ["odd"]))
        with self.assertRaisesRegex(ValueError, "no rule for the weight bias"):
            randomize.Randomizer(model, "small")


if __name__ == "__main__":
    unittest.main()
