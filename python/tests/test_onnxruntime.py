"""The names of ONNX Runtime: what is no option, provider or value is said, and the rest does what it says."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright import onnxruntime as ort

X = np.random.default_rng(0).random((3, 1, 8, 8), dtype=np.float32)


@pytest.fixture(scope="module")
def session() -> ort.InferenceSession:
    root = pathlib.Path(__file__).resolve().parents[2]
    return ort.InferenceSession(root / "examples/digits/digits.onnx")


@pytest.fixture(scope="module")
def expected(session: ort.InferenceSession) -> list[Any]:
    return session.run(None, {"image": X})


def test_a_missing_provider_is_warned_of(digits: str) -> None:
    with pytest.warns(UserWarning, match="Specified provider 'CUDAExecutionProvider' is not in available"):
        session = ort.InferenceSession(digits, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_a_provider_that_there_is_not_is_said(digits: str) -> None:
    with pytest.warns(UserWarning, match="Unknown Provider Type: FooExecutionProvider"):
        ort.InferenceSession(digits, providers=["FooExecutionProvider"])
    with pytest.raises(RuntimeError, match="Unknown Provider Type: FooExecutionProvider"):
        ort.InferenceSession(digits, providers=["FooExecutionProvider"], enable_fallback=False)
    with pytest.raises(ValueError, match="either strings or"):
        ort.InferenceSession(digits, providers=[3], enable_fallback=False)


def test_providers_can_be_set(session: ort.InferenceSession) -> None:
    session.set_providers([("CPUExecutionProvider", {"use_arena": 1})])
    assert session.get_provider_options() == {"CPUExecutionProvider": {"use_arena": "1"}}
    with pytest.raises(RuntimeError, match="Unknown Provider Type: Foo"):
        session.set_providers(["Foo"])
    with pytest.raises(ValueError, match="same length"):
        session.set_providers(["CPUExecutionProvider"], [{}, {}])


def test_options_that_there_are_not_are_refused(digits: str) -> None:
    options = ort.SessionOptions()
    with pytest.raises(AttributeError, match="'intra_op_threads'; did you mean 'intra_op_num_threads'"):
        options.intra_op_threads = 2
    with pytest.raises(TypeError, match="is int, not str"):
        options.intra_op_num_threads = "2"  # type: ignore[assignment]
    with pytest.raises(TypeError, match="GraphOptimizationLevel, not int"):
        options.graph_optimization_level = 1  # type: ignore[assignment]
    with pytest.raises(RuntimeError, match=r"allow_spining; did you mean 'session\.intra_op\.allow_spinning'"):
        options.add_session_config_entry("session.intra_op.allow_spining", "1")
    with pytest.raises(RuntimeError, match="does not have configuration with key"):
        options.get_session_config_entry("session.set_denormal_as_zero")
    with pytest.raises(tilewright.UnsupportedError, match="written back"):
        options.optimized_model_filepath = "x.onnx"
    with pytest.raises(TypeError, match="unexpected keyword argument 'sess_option'"):
        ort.InferenceSession(digits, sess_option=options)
    with pytest.raises(AttributeError, match="did you mean 'terminate'"):
        ort.RunOptions().terminat = True
    with pytest.raises(TypeError, match="Unable to load from type"):
        ort.InferenceSession(None)  # type: ignore[arg-type]


def test_options_mean_what_they_say(digits: str, expected: list[Any]) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.intra_op_num_threads", "1")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_free_dimension_override_by_name("N", 3)
    assert options.intra_op_num_threads == 1
    session = ort.InferenceSession(digits, options)
    assert session.get_inputs()[0].shape == [3, 1, 8, 8]
    assert session._how == {"threads": 1, "layout": None, "fuse": False}
    assert session.get_outputs()[0].shape == [3, 10]
    np.testing.assert_allclose(session.run(["logits"], {"image": X})[0], expected[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(tilewright.InputError):
        session.run(None, {"image": X[:2]})


def test_a_run_can_be_told_to_end(session: ort.InferenceSession) -> None:
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(tilewright.ExecutionError, match="terminate flag"):
        session.run(None, {"image": X}, options)


def test_inputs_are_named_that_are_missing(session: ort.InferenceSession) -> None:
    with pytest.raises(
        ValueError, match=r"Required inputs \(\['image'\]\) are missing from input feed \(\[\]\)"
    ):
        session.run(None, {})
    with pytest.raises(tilewright.InputError, match="nothing was given for input `image`"):
        session.run(None, {"image": None})


def test_lists_have_the_type_of_the_input(session: ort.InferenceSession, expected: list[Any]) -> None:
    np.testing.assert_allclose(session.run(None, {"image": X.tolist()})[0], expected[0], rtol=1e-5, atol=1e-6)


def test_values_are_bound(session: ort.InferenceSession, digits: str, expected: list[Any]) -> None:
    binding = session.io_binding()
    with pytest.raises(RuntimeError, match="Failed to find NodeArg with name: images"):
        binding.bind_cpu_input("images", X)
    binding.bind_cpu_input("image", X)
    with pytest.raises(RuntimeError, match="At least one output"):
        session.run_with_iobinding(binding)
    memory = np.zeros((3, 10), np.float32)
    binding.bind_output("probabilities")
    binding.bind_output("logits", "cpu", 0, np.float32, [3, 10], memory.ctypes.data)
    session.run_with_iobinding(binding)
    assert (memory == binding.copy_outputs_to_cpu()[1]).all()
    np.testing.assert_allclose(memory, expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), expected[1], rtol=1e-5, atol=1e-6)
    # Memory that is bound is read and written at each run.
    value = ort.OrtValue.ortvalue_from_numpy(X.copy())
    binding.bind_ortvalue_input("image", value)
    value.update_inplace(X[::-1])
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(memory, expected[0][::-1], rtol=1e-5, atol=1e-6)
    small = ort.OrtValue.ortvalue_from_shape_and_type([2, 10], np.float32)
    binding.bind_ortvalue_output("logits", small)
    with pytest.raises(tilewright.InputError, match=r"float32\[2, 10\], and the output is float32\[3, 10\]"):
        session.run_with_iobinding(binding)
    binding.clear_binding_inputs()
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_with_iobinding(binding)
    with pytest.raises(ValueError, match="must be used with the session that created it"):
        ort.InferenceSession(digits).run_with_iobinding(binding)


def test_inputs_are_read_at_an_address(session: ort.InferenceSession, expected: list[Any]) -> None:
    memory = (ctypes.c_float * X.size)(*X.ravel())
    binding = session.io_binding()
    binding.bind_input("image", "cpu", 0, np.float32, X.shape, ctypes.addressof(memory))
    binding.bind_output("logits")
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], expected[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(tilewright.UnsupportedError, match="cuda"):
        binding.bind_output("logits", "cuda")


def test_values_say_what_they_are() -> None:
    value = ort.OrtValue.ortvalue_from_numpy(X)
    assert (value.shape(), value.data_type(), value.element_type()) == ([3, 1, 8, 8], "tensor(float)", 1)
    assert value.tensor_size_in_bytes() == X.nbytes
    assert value.is_tensor()
    assert (np.from_dlpack(value) == X).all()
    # Memory is shared, as ONNX Runtime shares it.
    assert value.data_ptr() == X.ctypes.data
    turned = ort.OrtValue.ortvalue_from_numpy(X.T)
    assert (turned.numpy() == X.T).all()
    with pytest.raises(tilewright.UnsupportedError, match="elements of <U1"):
        ort.OrtValue.ortvalue_from_numpy(np.array(["a"]))
    half = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3C00], np.uint16), 10)
    assert half.numpy().tolist() == [1.0]
    assert half.data_type() == "tensor(float16)"


def test_a_device_is_the_cpu() -> None:
    made = ort.OrtDevice(ort.OrtDevice.cpu(), ort.OrtDevice.default_memory(), 0)
    for device in (ort.OrtDevice.make("cpu", 0), made):
        assert (device.device_type(), device.device_id()) == ("cpu", 0)
    with pytest.raises(tilewright.UnsupportedError, match="only the CPU"):
        ort.OrtDevice(ort.OrtDevice.cuda(), 0, 0)
    with pytest.raises(tilewright.UnsupportedError, match="only the CPU"):
        ort.OrtDevice.make("cuda", 0)


def test_values_go_in_and_out(session: ort.InferenceSession, expected: list[Any]) -> None:
    (logits,) = session.run_with_ort_values(["logits"], {"image": ort.OrtValue.ortvalue_from_numpy(X)})
    np.testing.assert_allclose(logits.numpy(), expected[0], rtol=1e-5, atol=1e-6)


def test_a_run_on_another_thread_says_how_it_ended(session: ort.InferenceSession, expected: list[Any]) -> None:
    done = threading.Event()
    told: list[Any] = []

    def end(results: list[Any], data: Any, wrong: str) -> None:
        told.append((results, data, wrong))
        done.set()

    session.run_async(["logits"], {"image": X}, end, 7)
    assert done.wait(60)
    np.testing.assert_allclose(told[0][0][0], expected[0], rtol=1e-5, atol=1e-6)
    assert told[0][1:] == (7, "")
    done.clear()
    session.run_async(["logits"], {"image": X[:, :, :3]}, end, None)
    assert done.wait(60)
    assert told[1][0] == []
    assert "image" in told[1][2]


def test_what_is_measured_is_written(digits: str, tmp_path: pathlib.Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "measured")
    session = ort.InferenceSession(digits, options)
    session.run(None, {"image": X})
    assert session.get_profiling_start_time_ns() > 0
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "measured_"))
    events = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    assert [e["name"] for e in events if e["cat"] == "Session"] == ["model_run"]
    assert len([e for e in events if e["cat"] == "Node"]) > 3
    assert all(e["ph"] == "X" and e["dur"] >= 0 for e in events)
    assert session.end_profiling() == ""


def test_a_model_says_what_it_is(session: ort.InferenceSession) -> None:
    onnx = pytest.importorskip("onnx")
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.version) == ("digits/train.py", "digits", 2**63 - 1)
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    ports = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "xy"]
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:], doc_string="a graph")
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(
        graph, opset_imports=opsets, ir_version=8, model_version=-3, domain="d", doc_string="é"
    )
    onnx.helper.set_model_props(model, {"k": "v", "empty": ""})
    meta = ort.InferenceSession(model.SerializeToString()).get_modelmeta()
    assert (meta.version, meta.domain, meta.description, meta.graph_description) == (-3, "d", "é", "a graph")
    assert meta.custom_metadata_map == {"k": "v", "empty": ""}


def test_a_session_can_be_pickled(session: ort.InferenceSession, digits: str, expected: list[Any]) -> None:
    with open(digits, "rb") as file:
        content = file.read()
    for one in (session, ort.InferenceSession(content)):
        again = pickle.loads(pickle.dumps(one))
        np.testing.assert_allclose(again.run(None, {"image": X})[0], expected[0], rtol=1e-5, atol=1e-6)


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: Any = (), **more: Any) -> bytes:
    """The content of a model."""
    helper = pytest.importorskip("onnx").helper
    graph = helper.make_graph(nodes, "small", inputs, outputs, list(weights))
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    helper.set_model_props(model, more)
    content: bytes = model.SerializeToString()
    return content


def _scaled(**more: Any) -> bytes:
    """A product with a weight `w` that may be given: it is an input, too."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    x, w, y = (
        helper.make_tensor_value_info(n, 1, s) for n, s in (("x", ["n", 2]), ("w", [2]), ("y", ["n", 2]))
    )
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    weight = onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    return _model([helper.make_node("Mul", ["x", "w"], ["y"])], [x, w], [y], [weight], **more)


ONES = np.ones((3, 2), np.float32)


def test_weights_can_be_given() -> None:
    content = _scaled()
    session = ort.InferenceSession(content)
    assert [port.name for port in session.get_inputs()] == ["x"]
    assert [(p.name, p.type, p.shape) for p in session.get_overridable_initializers()] == [
        ("w", "tensor(float)", [2])
    ]
    five = np.array([5, 6], np.float32)
    assert session.run(None, {"x": ONES, "w": five})[0].tolist() == [[5, 6]] * 3
    assert session.run(None, {"x": ONES, "w": five + 1})[0].tolist() == [[6, 7]] * 3
    assert session.run(None, {"x": ONES})[0].tolist() == [[1, 2]] * 3
    options = ort.SessionOptions()
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(five))
    again = pickle.loads(pickle.dumps(ort.InferenceSession(content, options)))
    assert again.run(None, {"x": ONES})[0].tolist() == [[5, 6]] * 3
    assert again.run(None, {"x": ONES, "w": five * 2})[0].tolist() == [[10, 12]] * 3
    with pytest.raises(RuntimeError, match="already been added: w"):
        options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(five)])
    options = ort.SessionOptions()
    options.add_initializer("v", ort.OrtValue.ortvalue_from_numpy(five))
    with pytest.raises(tilewright.InputError, match="no weight `v`"):
        ort.InferenceSession(content, options)


def test_weights_that_are_elsewhere_can_be_given(tmp_path: pathlib.Path) -> None:
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "scaled.onnx"
    onnx.save(
        onnx.load_model_from_string(_scaled()), path, save_as_external_data=True, location="w", size_threshold=0
    )
    assert ort.InferenceSession(path).run(None, {"x": ONES})[0].tolist() == [[1, 2]] * 3
    (tmp_path / "w").unlink()
    options = ort.SessionOptions()
    options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(ONES[0] * 4)])
    assert ort.InferenceSession(path, options).run(None, {"x": ONES})[0].tolist() == [[4, 4]] * 3


def test_sizes_are_settled_by_what_they_mean() -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
    options.add_free_dimension_override_by_denotation("DATA_CHANNEL", 7)
    session = ort.InferenceSession(_scaled(), options)
    assert session.get_inputs()[0].shape == [3, 2]
    with pytest.raises(tilewright.InputError):
        session.run(None, {"x": ONES[:2]})


def test_a_model_brings_options(monkeypatch: pytest.MonkeyPatch) -> None:
    content = _scaled(
        ort_config=json.dumps({"session_options": {"intra_op_num_threads": 1, "enable_profiling": 1}})
    )
    assert ort.InferenceSession(content).get_session_options().intra_op_num_threads == 0
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    given = ort.SessionOptions()
    options = ort.InferenceSession(content, given).get_session_options()
    assert (options.intra_op_num_threads, options.enable_profiling, given.intra_op_num_threads) == (1, True, 0)
    with pytest.raises(tilewright.ModelError, match="did you mean"):
        ort.InferenceSession(_scaled(ort_config='{"session_options": {"intra_op_threads": 1}}'))


def test_sequences_are_lists() -> None:
    helper = pytest.importorskip("onnx").helper
    tensor, sequence = helper.make_tensor_value_info, helper.make_tensor_sequence_value_info
    node = helper.make_node("SequenceInsert", ["xs", "x"], ["ys"])
    session = ort.InferenceSession(
        _model([node], [sequence("xs", 1, None), tensor("x", 1, ["n"])], [sequence("ys", 1, None)])
    )
    assert [(p.name, p.type, p.shape) for p in [*session.get_inputs(), *session.get_outputs()]] == [
        ("xs", "seq(tensor(float))", []),
        ("x", "tensor(float)", ["n"]),
        ("ys", "seq(tensor(float))", []),
    ]
    for lengths in ([], [2], [1, 3], []):
        (made,) = session.run(None, {"xs": [np.full(n, n, np.float32) for n in lengths], "x": ONES[0]})
        assert [y.tolist() for y in made] == [[n] * n for n in lengths] + [[1, 1]]
    (value,) = session.run_with_ort_values(None, {"xs": ort.OrtValue([ONES[0]]), "x": ort.OrtValue(ONES[0])})
    assert (value.is_tensor_sequence(), value.data_type()) == (True, "seq(tensor(float))")
    with pytest.raises(
        tilewright.InputError, match=r"input `xs` is a seq\(tensor\(float\)\): a list is needed"
    ):
        session.run(None, {"xs": ONES, "x": ONES[0]})


def test_optionals_need_not_be_there() -> None:
    helper = pytest.importorskip("onnx").helper
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2]))
    x, y = (helper.make_value_info(name, kind) for name in "xy")
    has = helper.make_node("OptionalHasElement", ["x"], ["has"])
    same = helper.make_node("Identity", ["x"], ["y"])
    content = _model([same, has], [x], [y, helper.make_tensor_value_info("has", 9, [])])
    session = ort.InferenceSession(content)
    for feed in ({}, {"x": None}):
        y, has = session.run(None, feed)
        assert (y, bool(has)) == (None, False)
    y, has = session.run(None, {"x": ONES[0]})
    assert (y.tolist(), bool(has)) == ([1, 1], True)


def test_a_session_is_compiled_when_it_is_said(digits: str, expected: list[Any], compiled: list[str]) -> None:
    for when, before, after in (("session", 1, 1), ("background", 0, 1), ("first_run", 0, 1)):
        options = ort.SessionOptions()
        options.add_session_config_entry("tilewright.compile", when)
        compiled.clear()
        session = ort.InferenceSession(digits, options)
        assert len(compiled) == before
        np.testing.assert_allclose(session.run(None, {"image": X})[0], expected[0], rtol=1e-5, atol=1e-6)
        assert len(compiled) == after
    with pytest.raises(RuntimeError, match="'session' or 'background' or 'first_run', not 'never'"):
        options.add_session_config_entry("tilewright.compile", "never")


def test_a_process_ends_while_a_session_compiles(tmp_path: pathlib.Path) -> None:
    helper = pytest.importorskip("onnx").helper
    names = ["x", *(f"t{k}" for k in range(400)), "y"]
    nodes = [
        helper.make_node(("Sin", "Softplus")[k % 2], [a], [b]) for k, (a, b) in enumerate(zip(names, names[1:]))
    ]
    ports = [helper.make_tensor_value_info(n, 1, ["n", 7]) for n in "xy"]
    path = tmp_path / "long.onnx"
    path.write_bytes(_model(nodes, ports[:1], ports[1:]))
    program = f"""
from tilewright import onnxruntime as ort
options = ort.SessionOptions()
options.add_session_config_entry("tilewright.compile", "background")
session = ort.InferenceSession({str(path)!r}, options)
kept = ort.InferenceSession({str(path)!r}, options)
del session
"""
    environment = {**os.environ, "TILEWRIGHT_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_model_that_cannot_be_compiled_is_refused_at_once() -> None:
    helper = pytest.importorskip("onnx").helper
    ports = [helper.make_tensor_value_info(n, 1, [2]) for n in "xy"]
    content = _model([helper.make_node("Nonsense", ["x"], ["y"])], ports[:1], ports[1:])
    with pytest.raises(tilewright.UnsupportedError, match="Nonsense"):
        ort.InferenceSession(content)


def test_sizes_that_an_open_program_takes_for_equal_need_not_be() -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    x, y = (
        helper.make_tensor_value_info("x", 1, [1, 1, "n"]),
        helper.make_tensor_value_info("y", 1, [1, 1, "k"]),
    )
    nodes = [
        helper.make_node("MaxPool", ["x"], ["half"], kernel_shape=[2], strides=[2]),
        helper.make_node("Expand", ["half", "shape"], ["y"]),
    ]
    shape = onnx.numpy_helper.from_array(np.array([1, 1, 5]), "shape")
    session = ort.InferenceSession(_model(nodes, [x], [y], [shape]))
    for n in (10, 2, 11, 3, 2):
        given = np.arange(n, dtype=np.float32).reshape(1, 1, n)
        half = given[:, :, : n // 2 * 2].reshape(1, 1, -1, 2).max(3)
        (made,) = session.run(None, {"x": given})
        assert (made == np.broadcast_to(half, (1, 1, 5))).all()
    with pytest.raises(tilewright.Error, match="node 1"):
        session.run(None, {"x": np.zeros((1, 1, 6), np.float32)})


def test_a_quick_result_comes_first(digits: str, expected: list[Any], compiled: list[str]) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("tilewright.quick", "1")
    session = ort.InferenceSession(digits, options)
    np.testing.assert_allclose(session.run(None, {"image": X})[0], expected[0], rtol=1e-4, atol=1e-5)
    assert "quickly, for the first runs" in compiled[0]
    deadline = time.monotonic() + 60
    while len(compiled) < 2 and time.monotonic() < deadline:
        (logits, _) = session.run(None, {"image": X[:2]})
    assert compiled[1:] == ["what was compiled on another thread runs from now on"]
    np.testing.assert_allclose(logits, expected[0][:2], rtol=1e-4, atol=1e-5)
    assert session._programs._all_sizes is not None
    assert session._programs._all_sizes._options["opt_level"] == 3


def test_messages_go_to_a_function(digits: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 1
    options.logid = "mine"
    ort.InferenceSession(digits, options)
    assert capsys.readouterr().err.startswith("[I:tilewright:mine, InferenceSession] compiled in ")
    for severity in (-1, 5):
        with pytest.raises(RuntimeError, match="Invalid logging severity"):
            ort.set_default_logger_callback(print, severity)
    with pytest.raises(RuntimeError, match="is a function, not str"):
        ort.set_default_logger_callback("print")  # type: ignore[arg-type]

    def wrong(*message: Any) -> None:
        raise ValueError(message)

    ort.set_default_logger_callback(wrong, 0)
    ort.InferenceSession(digits)
    ort.set_default_logger_callback(None)
    ort.set_default_logger_severity(2)
    assert "the callback for messages raised ValueError" in capsys.readouterr().err


def test_strings_go_in_and_out() -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.STRING, [2]) for n in "abc"]
    node = helper.make_node("StringConcat", ["a", "b"], ["c"])
    graph = helper.make_graph([node], "texts", ports[:2], ports[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString())
    assert [(i.type, i.shape) for i in session.get_inputs()] == [("tensor(string)", [2])] * 2
    for a, b in ((["x", "yé"], ["", "2"]), (np.array(["a", "b"], object), np.array(["cd", "e"]))):
        (c,) = session.run(None, {"a": a, "b": b})
        assert c.tolist() == [p + q for p, q in zip(a, b)]
    with pytest.raises(tilewright.InputError, match="no string: int"):
        session.run(None, {"a": np.array(["x", 3], object), "b": ["a", "b"]})


def _mapped(operator: str, keys: int, attributes: dict[str, Any]) -> bytes:
    """A model of one operator of `ai.onnx.ml` that gives or takes maps."""
    helper = pytest.importorskip("onnx").helper
    numbers = helper.make_tensor_type_proto(1, ["n", 2])
    maps = helper.make_map_type_proto(keys, helper.make_tensor_type_proto(1, None))
    given = numbers if operator == "ZipMap" else maps
    made = helper.make_sequence_type_proto(maps) if operator == "ZipMap" else numbers
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"], domain="ai.onnx.ml", **attributes)],
        "maps",
        [helper.make_value_info("x", given)],
        [helper.make_value_info("y", made)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    content: bytes = helper.make_model(graph, opset_imports=opsets).SerializeToString()
    return content


def test_maps_come_as_dicts() -> None:
    x = np.array([[0.25, 0.75], [1.0, 0.0]], np.float32)
    session = ort.InferenceSession(_mapped("ZipMap", 8, {"classlabels_strings": ["no", "yes"]}))
    assert session.run(None, {"x": x}) == [[{"no": 0.25, "yes": 0.75}, {"no": 1.0, "yes": 0.0}]]
    (port,) = session.get_outputs()
    assert (port.name, port.type, port.shape) == ("y", "seq(map(string,tensor(float)))", [])
    session = ort.InferenceSession(_mapped("ZipMap", 7, {"classlabels_int64s": [7, -1]}))
    assert session.run(["y"], {"x": x}) == [[{7: 0.25, -1: 0.75}, {7: 1.0, -1: 0.0}]]


def test_maps_are_given_as_dicts() -> None:
    session = ort.InferenceSession(_mapped("DictVectorizer", 8, {"string_vocabulary": ["é", "b"]}))
    assert [(port.name, port.type) for port in session.get_inputs()] == [("x", "map(string,tensor(float))")]
    for given, row in [({"b": 2.0, "other": 1.0}, [0.0, 2.0]), ({"é": 3.0}, [3.0, 0.0])]:
        assert session.run(None, {"x": given})[0].tolist() == [row]
    session = ort.InferenceSession(_mapped("DictVectorizer", 7, {"int64_vocabulary": [5, 6]}))
    assert session.run(None, {"x": {6: 0.5, 8: 1.0, 5: 2.0}})[0].tolist() == [[2.0, 0.5]]
    with pytest.raises(tilewright.InputError, match="a dict is needed"):
        session.run(None, {"x": np.zeros(2, np.float32)})
