from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright import onnxruntime as ort

X = np.random.default_rng(0).random((3, 1, 8, 8), dtype=np.float32)


def test_a_session_has_the_names_of_onnx_runtime(digits: str) -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(digits, options, providers=["CPUExecutionProvider"])
    (images,) = session.get_inputs()
    assert (images.name, images.type, images.shape) == ("image", "tensor(float)", ["N", 1, 8, 8])
    assert [o.name for o in session.get_outputs()] == ["logits", "probabilities"]
    logits, probabilities = session.run(None, {"image": X})
    assert logits.shape == (3, 10)
    (only,) = session.run(["probabilities"], {"image": X})
    assert (only == probabilities).all()
    (one,) = session.run(["logits"], {"image": X[:1]})
    np.testing.assert_allclose(one, logits[:1], rtol=1e-5, atol=1e-6)
    with open(digits, "rb") as file:
        again = ort.InferenceSession(file.read())
    np.testing.assert_allclose(again.run(["logits"], {"image": X})[0], logits, rtol=1e-5, atol=1e-6)
    with pytest.raises(tilewright.InputError, match="there is no output `logit`"):
        session.run(["logit"], {"image": X})
    with pytest.raises(tilewright.InputError, match="there is no input `images`"):
        session.run(None, {"images": X})


def test_a_session_is_compiled_once(digits: str, compiled: list[str]) -> None:
    session = ort.InferenceSession(digits)
    logits = session.run(["logits"], {"image": X})[0]
    for count in (1, 2, 3, 1):
        (some,) = session.run(["logits"], {"image": X[:count]})
        np.testing.assert_allclose(some, logits[:count], rtol=1e-5, atol=1e-6)
    assert len(compiled) == 1
    assert [o.shape for o in session.get_outputs()] == [["N", 10], ["N", 10]]


def test_values_that_decide_sizes_are_compiled_in(compiled: list[str]) -> None:
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "reshape",
        [
            helper.make_tensor_value_info("x", types.FLOAT, ["n"]),
            helper.make_tensor_value_info("shape", types.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", types.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString())
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, 2], [-1, 6], [2, 3]):
        (y,) = session.run(None, {"x": x, "shape": np.array(shape)})
        assert (y == x.reshape(shape)).all()
    assert len([text for text in compiled if text.startswith("compiled in")]) == 3


def test_the_backend_runs_models_and_nodes(digits: str) -> None:
    onnx = pytest.importorskip("onnx")
    from tilewright import onnx_backend as backend

    model = onnx.load(digits)
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
    prepared = backend.prepare(model)
    logits, _ = prepared.run([X])
    assert (backend.run_model(model, [X])[0] == logits).all()
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    (c,) = backend.run_node(node, [a, a[0]])
    assert (c == a + a[0]).all()
    for narrow in ("FLOAT8E4M3FN", "FLOAT4E2M1", "INT4", "UINT4"):
        code = getattr(onnx.TensorProto, narrow)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(code)
        (c,) = backend.run_node(onnx.helper.make_node("Cast", ["a"], ["c"], to=code), [a])
        assert c.dtype == dtype
        assert (c.astype(np.float32) == a.astype(dtype).astype(np.float32)).all()


def suite() -> Any:
    """A few cases of ONNX's own suite; `conformance/onnx/backend.py` runs all of them."""
    pytest.importorskip("onnx")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import onnx.backend.test
        from tilewright import onnx_backend

        tests = onnx.backend.test.BackendTest(onnx_backend.TilewrightBackend, __name__)
        for name in (
            "test_add_cpu",
            "test_conv_with_strides_padding_cpu",
            "test_reshape_negative_dim_cpu",
            "test_softmax_axis_1_cpu",
            "test_topk_negative_axis_cpu",
        ):
            tests.include(f"^{name}$")
        return tests.enable_report().test_suite


def test_cases_of_the_backend_suite_pass() -> None:
    import unittest

    result = unittest.TestResult()
    suite().run(result)
    assert result.testsRun >= 5
    assert not result.failures
    assert not result.errors
