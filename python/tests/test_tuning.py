from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright import tuning

pytestmark = pytest.mark.filterwarnings("ignore")

#: A convolution and what follows.
CONVOLUTION = """
@I.ir_module
class Module:
    @T.prim_func
    def conv(
        X: T.Buffer((1, 16, 9, 9), "float32"),
        W: T.Buffer((16, 16, 3, 3), "float32"),
        Y: T.Buffer((1, 16, 7, 7), "float32"),
    ):
        for n, o, h, w, c, y, x in T.grid(1, 16, 7, 7, 16, 3, 3):
            with T.block("Y"):
                vn, vo, vh, vw, vc, vy, vx = T.axis.remap("SSSSRRR", [n, o, h, w, c, y, x])
                with T.init():
                    Y[vn, vo, vh, vw] = T.float32(0)
                Y[vn, vo, vh, vw] = Y[vn, vo, vh, vw] + X[vn, vc, vh + vy, vw + vx] * W[vo, vc, vy, vx]

    @R.function
    def main(x: R.Tensor((1, 16, 9, 9), "float32"), w: R.Tensor((16, 16, 3, 3), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.conv, (x, w), out_sinfo=R.Tensor((1, 16, 7, 7), "float32"))
            R.output(y)
        return y
"""


@pytest.fixture
def file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(tmp_path / "tuning.sqlite")
    monkeypatch.setenv("TILEWRIGHT_TUNING", path)
    return path


def test_measurements_are_kept_and_used(file: str) -> None:
    module = tilewright.parse(CONVOLUTION)
    told: list[Any] = []
    done = tilewright.tune(module, budget=60, threads=1, progress=lambda *what: told.append(what))
    assert done.file == file
    assert done.candidates == done.measured == done.new >= 2
    assert done.failures == ()
    assert done.models["plan"] > 0
    assert len(told) >= done.new
    again = tilewright.tune(module, budget=60, threads=1)
    assert (again.measured, again.new) == (done.measured, 0)
    assert again.models == done.models
    assert tilewright.plan(module, threads=1).unit == "ns"
    lines = tuning.export_measurements().splitlines()
    assert len(lines) >= done.new
    assert all(json.loads(line) for line in lines)
    other = os.path.join(os.path.dirname(file), "other.sqlite")
    kept, count = tuning.import_measurements("\n".join(lines), other)
    assert kept == count > 0
    x = np.ones((1, 16, 9, 9), np.float32)
    w = np.ones((16, 16, 3, 3), np.float32)
    assert (module.compile(threads=1)(x, w) == 144).all()


def test_a_measurer_survives_what_it_measures(file: str) -> None:
    bad = json.dumps({"function": {"text": "no script", "free": [], "threads": 1}})
    with tuning.measurer(limit=20) as worker:
        nanoseconds, why = worker.ask(bad)
        assert nanoseconds is None
        assert why
        with pytest.raises(tilewright.InputError, match="a request"):
            worker.ask("{")
    with tuning.measurer(limit=0.01) as hurried:
        assert hurried.ask(bad)[0] is None


def test_without_a_choice_or_a_file_there_is_nothing_to_tune(
    double: tilewright.Module, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(tilewright.InputError, match="no convolution"):
        tilewright.tune(double, file=tmp_path / "tuning.sqlite")
    monkeypatch.setenv("TILEWRIGHT_TUNING", "off")
    with pytest.raises(tilewright.InputError, match="there is no file"):
        tilewright.tune(double)
