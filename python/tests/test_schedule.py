from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
import tilewright
from conftest import ROOT


def test_every_primitive_is_a_method_with_its_documentation() -> None:
    page = (ROOT / "docs/primitives.md").read_text()
    rows = re.findall(r"^\| `(\w+)\((.*?)\)` \| \w* \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 30
    for name, _, summary in rows:
        method = getattr(tilewright.Schedule, name)
        assert method.__doc__.startswith(summary), name
        assert inspect.signature(method).parameters["self"]
    split = inspect.signature(tilewright.Schedule.split)
    assert list(split.parameters)[:3] == ["self", "loop", "factors"]


def test_loops_are_changed_by_methods(double: tilewright.Module) -> None:
    sch = tilewright.Schedule(double)
    block = sch.get_block("B")
    assert (block.name, block.function) == ("B", "f")
    (loop,) = sch.get_loops(block)
    outer, inner = sch.split(loop, [None, 4])
    sch.vectorize(inner)
    assert outer.name != inner.name
    assert "T.vectorized(4)" in str(sch.module)
    again = tilewright.Schedule(double)
    again.run_script(sch.trace)
    assert again.module.diff(sch.module, strict=True) is None
    x = np.arange(14, dtype=np.float32)
    assert (sch.module.compile(schedule=False, threads=1)(x) == 2 * x).all()


def test_lambdas_become_index_maps(double: tilewright.Module) -> None:
    by_lambda = tilewright.Schedule(double, change_interface=True)
    by_lambda.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=0.0)
    by_text = tilewright.Schedule(double, change_interface=True)
    by_text.run_script(
        "sch.transform_layout(block='B', buffer=('write', 0), "
        "index_map=lambda i: [i // 4, i % 4], pad_value=0.0)"
    )
    assert by_lambda.module.diff(by_text.module, strict=True) is None
    again = tilewright.Schedule(double, change_interface=True)
    again.run_script(by_lambda.trace)
    assert again.module.diff(by_text.module, strict=True) is None
    x = np.arange(14, dtype=np.float32)
    y = by_lambda.module.compile(threads=1)(x)
    assert y.shape == (4, 4)
    assert y.ravel().tolist() == [*(2 * x), 0, 0]


def test_pad_values_may_be_functions(double: tilewright.Module) -> None:
    sch = tilewright.Schedule(double, change_interface=True)

    def index_map(i: Any) -> list[Any]:
        return [i // 4, i % 4]

    sch.transform_layout("B", "B", index_map, pad_value=lambda i, j: 5.0)
    y = sch.module.compile(threads=1)(np.zeros(14, np.float32))
    assert y.ravel().tolist() == [0] * 14 + [5, 5]


def test_axis_separators_group_axes(double: tilewright.Module) -> None:
    sch = tilewright.Schedule(double, change_interface=True)
    sch.transform_layout("B", "B", lambda i: [i // 7, tilewright.AXIS_SEPARATOR, i % 7], pad_value=None)
    assert "axis_separators=[1]" in str(sch.module)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda i: [i // 0.5], "cast with"),
        (lambda i: "i", "gave str: expected expressions"),
        (lambda i: [i] if i < 3 else [i + 1], "not known while it is written"),
        (lambda i, j: [i, j], "2 indices|takes 2"),
        (lambda *i: [i[0]], "takes each of them by a name"),
        (lambda i: [i / 2], "for floats"),
    ],
)
def test_functions_that_are_no_maps_are_errors(double: tilewright.Module, function: Any, message: str) -> None:
    sch = tilewright.Schedule(double, change_interface=True)
    with pytest.raises((tilewright.Error, TypeError), match=message):
        sch.transform_layout("B", "B", function)
    assert sch.module.diff(double, strict=True) is None


def test_what_is_refused_changes_nothing(double: tilewright.Module) -> None:
    sch = tilewright.Schedule(double)
    (loop,) = sch.get_loops("B")
    with pytest.raises(tilewright.Error) as error:
        sch.transform_layout("B", "B", lambda i: [13 - i])
    assert error.value.kind in {"refused", "input"}
    with pytest.raises(tilewright.InputError, match="has no argument `facors`"):
        sch.split(loop, facors=[2])  # type: ignore[call-arg]
    with pytest.raises(tilewright.Error):
        sch.get_block("nothing")
    assert sch.module.diff(double, strict=True) is None
    with pytest.raises(AttributeError):
        sch.spilt(loop)  # type: ignore[attr-defined]
