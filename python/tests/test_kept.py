"""Programs of models that are kept for the next process."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright

onnx = pytest.importorskip("onnx")

ROWS, INNER, COLUMNS = 3, 512, 600

Start = Callable[..., str]


def write_model(path: pathlib.Path, weight: float, beside: bool = False) -> None:
    """``y = (x @ w)`` with rows of an open number, in the shape that ``shape`` says."""
    helper, types = onnx.helper, onnx.TensorProto
    values = np.full((INNER, COLUMNS), weight, np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["product"]),
            helper.make_node("Reshape", ["product", "shape"], ["y"]),
        ],
        "product",
        [
            helper.make_tensor_value_info("x", types.FLOAT, ["N", INNER]),
            helper.make_tensor_value_info("shape", types.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", types.FLOAT, None)],
        [onnx.numpy_helper.from_array(values, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if beside:
        path.with_suffix(".weights").unlink(missing_ok=True)
    onnx.save(model, path, save_as_external_data=beside, location=path.with_suffix(".weights").name)


# What a process of its own does: it says the result, whether stages of compilation ran, and which inputs
# are constants.
PROCESS = """
import sys, numpy as np, tilewright
from tilewright import onnxruntime as ort
path, way, columns = sys.argv[1], sys.argv[2], int(sys.argv[3])
x = np.ones((3, 512), np.float32)
shape = np.array([-1, columns])
stages = []
if way == "module":
    module = tilewright.load(path, dims={"N": 3}, values={"shape": shape})
    exe = module.compile(threads=1, progress=lambda *told: stages.append(told))
    y, fixed, made = exe(x), module.fixed_inputs, bool(stages)
else:
    session = ort.InferenceSession(path)
    (y,) = session.run(None, {"x": x, "shape": shape})
    fixed = session._programs._fixed
    # What was found has read no module.
    made = None
print(y.shape, float(y[0, 0]), made, list(fixed))
"""


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Start:
    def run(path: pathlib.Path, way: str = "module", columns: int = COLUMNS) -> str:
        environment = {**os.environ, "TILEWRIGHT_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, "-c", PROCESS, str(path), way, str(columns)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_a_second_process_takes_the_program_of_the_first(tmp_path: pathlib.Path, start: Start) -> None:
    model = tmp_path / "product.onnx"
    write_model(model, 0.5)
    assert start(model) == "(3, 600) 256.0 True ['shape']"
    assert start(model) == "(3, 600) 256.0 False ['shape']"
    # Another value of what is compiled in.
    assert start(model, columns=300) == "(6, 300) 256.0 True ['shape']"
    # Another model under the same name.
    write_model(model, 0.25)
    assert start(model) == "(3, 600) 128.0 True ['shape']"
    assert start(model) == "(3, 600) 128.0 False ['shape']"


def test_weights_beside_a_model_must_be_the_same(tmp_path: pathlib.Path, start: Start) -> None:
    model = tmp_path / "product.onnx"
    write_model(model, 0.5, beside=True)
    assert start(model) == "(3, 600) 256.0 True ['shape']"
    assert start(model) == "(3, 600) 256.0 False ['shape']"
    before = model.read_bytes()
    write_model(model, 0.25, beside=True)
    assert model.read_bytes() == before
    assert start(model) == "(3, 600) 128.0 True ['shape']"


def test_a_session_takes_it_as_well(tmp_path: pathlib.Path, start: Start) -> None:
    model = tmp_path / "product.onnx"
    write_model(model, 0.5)
    for _ in range(2):
        assert start(model, "session") == "(3, 600) 256.0 None ['shape']"


def test_a_file_that_changes_is_not_read_later(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "product.onnx"
    write_model(path, 0.5)
    x = np.ones((ROWS, INNER), np.float32)
    sizes: dict[str, Any] = {"dims": {"N": ROWS}, "values": {"shape": np.array([-1, COLUMNS])}}
    replaced = tilewright.load(path, **sizes)
    gone = tilewright.load(path, **sizes)
    # Another file under its name, and none: the model is the one that was loaded.
    write_model(tmp_path / "other.onnx", 0.25)
    (tmp_path / "other.onnx").replace(path)
    assert replaced.compile(threads=1)(x)[0, 0] == 256
    path.unlink()
    assert gone.compile(threads=1)(x)[0, 0] == 256
    # The same file with another content is an error.
    write_model(path, 0.5)
    changed = tilewright.load(path, **sizes)
    assert [port.name for port in changed.inputs] == ["x", "shape"]
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"1234")
    os.utime(path, ns=(1, 1))
    with pytest.raises(tilewright.FileError, match="has changed since it was loaded"):
        changed.compile(threads=1)
