from __future__ import annotations

import importlib.util
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
import tilewright
from conftest import TWO, check_interrupt, elementwise, long_function


def test_text_goes_in_and_comes_out(double: tilewright.Module) -> None:
    again = tilewright.parse(str(double))
    assert again.diff(double) is None
    assert double.entry == "f"
    assert list(double) == ["f"]
    assert repr(double) == "<Module of 1 functions: f>"
    assert double.inputs == (
        tilewright.Port("A", "float32", (14,)),
        tilewright.Port("B", "float32", (14,)),
    )


def test_sizes_may_stay_open() -> None:
    module = tilewright.parse(TWO)
    assert module.open_sizes == ("n",)
    assert module.inputs[0].shape == ("n", 3)
    exe = module.compile(threads=1)
    assert exe.inputs[0].shape == ("n", 3)
    for n in (1, 5, 2):
        a = np.ones((n, 3), np.float32)
        c, d = exe(a, a)
        assert c.shape == d.shape == (n, 3)
    with pytest.raises(tilewright.InputError, match="at least 1"):
        exe(np.ones((0, 3), np.float32), np.ones((0, 3), np.float32))
    for n in (1, 5):
        a = np.ones((n, 3), np.float32)
        c, d = module.compile(threads=1, dims={"n": n})(a, a)
        assert c.shape == d.shape == (n, 3)
    assert module.with_sizes({"n": 4}).inputs[0].shape == (4, 3)
    assert module.with_sizes(shapes={"A": (4, 3)}).inputs[1].shape == (4, 3)


def test_a_model_may_be_compiled_for_several_sizes(digits: str) -> None:
    module = tilewright.load(digits)
    for n in (1, 3):
        exe = module.compile(threads=1, dims={"N": n})
        assert exe.outputs[0].shape == (n, 10)
    with pytest.raises(tilewright.InputError, match="batch"):
        module.compile(dims={"batch": 3})
    assert 'image: R.Tensor(("N", 1, 8, 8)' in str(module)


def test_errors_have_their_place() -> None:
    text = "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    A[0] = B[0]\n"
    with pytest.raises(tilewright.SyntaxError) as caught:
        tilewright.parse(text, name="model.py")
    error = caught.value
    assert error.kind == "syntax"
    assert error.place == tilewright.Place("model.py", 3, 12, "B")
    assert "model.py:3:12" in str(error)
    assert "B" in error.message
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.place, str(again)) == (error.place, str(error))


def test_kinds_of_errors_are_classes() -> None:
    assert issubclass(tilewright.InputError, ValueError)
    assert issubclass(tilewright.FileError, OSError)
    with pytest.raises(tilewright.FileError):
        tilewright.load("no such file.onnx")
    with pytest.raises(tilewright.Error, match="no such file"):
        tilewright.load("no such file.py")


def test_a_damaged_model_is_an_error(tmp_path: object) -> None:
    import pathlib

    path = pathlib.Path(str(tmp_path)) / "broken.onnx"
    path.write_bytes(b"\x08\x07\xff\xff\xff")
    with pytest.raises(tilewright.ModelError):
        tilewright.load(path)


def test_differences_are_found() -> None:
    a = tilewright.parse(elementwise("float32"))
    b = tilewright.parse(elementwise("float32", expression="A[vi] + T.float32(1)"))
    assert a.diff(a) is None
    difference = a.diff(b)
    assert difference is not None
    assert difference.path in str(difference)
    assert difference.lines == (7, 7)


def test_modules_can_be_pickled(digits: str) -> None:
    module = tilewright.load(digits, dims={"N": 2})
    again = pickle.loads(pickle.dumps(module))
    assert again.diff(module, strict=True) is None
    assert str(again) == str(module)


def test_a_notebook_shows_highlighted_text(double: tilewright.Module) -> None:
    html = double._repr_html_()
    assert '<span style="color:#a626a4">def</span>' in html
    import html as escapes
    import re

    plain = escapes.unescape(re.sub(r"<[^>]*>", "", html))
    assert plain.strip() == str(double).strip()


def test_stages_can_be_looked_at(double: tilewright.Module) -> None:
    assert tilewright.STAGES[-1] == "lower"
    assert "T.block" not in str(double.after("lower"))
    with pytest.raises(tilewright.InputError, match="there is no stage `lo`"):
        double.after("lo")


def test_a_model_is_read_from_its_bytes(digits: str) -> None:
    with open(digits, "rb") as file:
        content = file.read()
    x = np.random.default_rng(0).random((2, 1, 8, 8), dtype=np.float32)
    expected = tilewright.load(digits, dims={"N": 2}).compile()(x)[0]
    models: list[Any] = [content, bytearray(content), memoryview(content)]
    if importlib.util.find_spec("onnx"):
        import onnx

        models.append(onnx.load(digits))
    for model in models:
        module = tilewright.load(model)
        assert module.inputs[0].shape == ("N", 1, 8, 8)
        assert (module.compile(dims={"N": 2})(x)[0] == expected).all()
    with pytest.raises(tilewright.ModelError):
        tilewright.load(content[:100])


def test_errors_give_the_arguments_of_python() -> None:
    advice = tilewright.errors._make
    error = advice("input", "give --dim N=SIZE", None, "--dim N=SIZE --dim x.0=SIZE", ["--unchecked"], "r")
    assert error.message == 'give dims={"N": SIZE}'
    assert error.help == 'dims={"N": SIZE, "x.0": SIZE}'
    assert error.notes == ("unchecked=True",)
    error = advice("input", "m", None, "e.g. --input y=FILE.npy", [], "give the open sizes with --dim")
    assert error.help == 'e.g. values={"y": ARRAY}'
    assert str(error) == "give the open sizes with dims="


def test_no_error_of_a_compilation_names_the_command_line() -> None:
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    ports = [
        helper.make_tensor_value_info("x", types.FLOAT, [6]),
        helper.make_tensor_value_info("shape", types.INT64, [2]),
    ]
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    result = helper.make_tensor_value_info("y", types.FLOAT, None)
    graph = helper.make_graph([node], "reshape", ports, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(tilewright.InputError) as error:
        tilewright.load(model).compile()
    assert "--" not in str(error.value)
    assert 'values={"shape": ARRAY}' in str(error.value)


def test_an_interrupt_ends_a_pass(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "long.py"
    file.write_text(long_function(1600), encoding="utf-8")
    program = f"""
import tilewright
module = tilewright.load({str(file)!r})
print("ready", flush=True)
try:
    module.run_pass("lower")
    print("too fast", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    check_interrupt(program, after=0.3)
