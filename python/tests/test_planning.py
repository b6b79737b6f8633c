from __future__ import annotations

import pathlib
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import tilewright
from conftest import elementwise


@pytest.fixture(scope="module")
def plan() -> tilewright.Plan:
    root = pathlib.Path(__file__).parents[2]
    model = root / "examples/digits/digits.onnx"
    return tilewright.plan(tilewright.load(model, dims={"N": 4}), name="<digits>")


def test_a_plan_says_what_was_decided(plan: tilewright.Plan, digits: str) -> None:
    (graph,) = plan.graphs
    assert plan.cost == graph["objective"] > 0
    assert graph["alternatives"]["none"] >= plan.cost
    assert {call["name"] for call in graph["calls"]}
    assert plan.unit in {"cycles", "nanoseconds"}
    assert str(plan.cost) in str(plan)
    x = np.random.default_rng(0).random((4, 1, 8, 8), dtype=np.float32)
    got = plan.module.compile(layout="none", threads=1)(x)
    wanted = tilewright.load(digits, dims={"N": 4}).compile(layout="none", threads=1)(x)
    for a, b in zip(got, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_plan_can_be_asked_what_if(plan: tilewright.Plan) -> None:
    convolutions = [c["name"] for c in plan.graphs[0]["calls"] if plan.what_if(c["name"], "none") >= plan.cost]
    assert convolutions
    with pytest.raises(tilewright.InputError, match="no call makes `nothing`"):
        plan.what_if("nothing", "nhwc")
    with pytest.raises(tilewright.InputError, match="cannot be computed in `round`"):
        plan.what_if(convolutions[0], "round")


def test_a_plan_is_drawn(plan: tilewright.Plan, tmp_path: pathlib.Path) -> None:
    (drawing,) = plan.drawings
    root = ElementTree.fromstring(drawing)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall(".//{http://www.w3.org/2000/svg}rect")) > 5
    plan.save(tmp_path / "plan.svg")
    plan.save(tmp_path / "plan.html")
    assert (tmp_path / "plan.svg").read_text() == drawing
    page = (tmp_path / "plan.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "&lt;digits&gt;" in page
    assert plan._repr_html_().startswith("<iframe srcdoc=")
    layouts = plan.layouts
    assert layouts
    assert all(len(layout.shape) <= len(layout.physical) for layout in layouts)
    assert any("<table" in layout._repr_html_() for layout in layouts)


def test_layouts_are_drawn() -> None:
    picture = tilewright.drawing.layout((3, 7), lambda i, j: [j // 4, i, j % 4])
    root = ElementTree.fromstring(str(picture))
    assert len(root.findall("{http://www.w3.org/2000/svg}rect")) == 24
    assert str(picture).count("#d9d9d9") == 3
    with pytest.raises(tilewright.InputError, match="both lie at"):
        tilewright.drawing.layout((5,), lambda i: [i // 2])
    with pytest.raises(tilewright.InputError, match="takes 1 indices, and the shape has 2"):
        tilewright.drawing.layout((5, 2), lambda i: [i])


def test_a_module_without_graphs_has_no_plan() -> None:
    plan = tilewright.plan(tilewright.parse(elementwise("float32")))
    assert plan.graphs == ()
    assert plan.cost == 0
    assert "nothing to plan" in plan.html()
