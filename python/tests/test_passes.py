from __future__ import annotations

import inspect
import re

import pytest
import tilewright
from conftest import ROOT
from tilewright import passes


def test_every_pass_is_a_function_with_its_options() -> None:
    page = (ROOT / "docs/passes.md").read_text()
    names = re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE)
    assert len(names) > 15
    options = re.findall(r"^\| `(\w+)\.(\w+)` \|", page, re.MULTILINE)
    for name in names:
        assert name in passes.__all__
    for name, option in options:
        assert option in inspect.signature(getattr(passes, name)).parameters, (name, option)
        assert option in getattr(passes, name).__doc__


GUARDED = """
@T.prim_func
def f(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for io, ii in T.grid(4, 4):
        with T.block("B"):
            vi = T.axis.spatial(14, io * 4 + ii)
            T.where(io * 4 + ii < 14)
            B[vi] = A[vi]
"""


def test_options_have_types() -> None:
    module = tilewright.parse(GUARDED)
    assert "if" not in str(passes.simplify(module).module)
    assert passes.hoist_if(module, support_block_scope_hoisting=False).module.functions == ("f",)
    with pytest.raises(tilewright.InputError, match="is of type bool, not int"):
        passes.hoist_if(module, support_block_scope_hoisting=1)  # type: ignore[arg-type]
    with pytest.raises(tilewright.InputError, match="is of type int, not bool"):
        passes.hoist_expression(module, hoisted_conditionals=True)
    with pytest.raises(tilewright.InputError, match="from 0 to 15, not `16`"):
        passes.hoist_expression(module, hoisted_conditionals=16)
    with pytest.raises(tilewright.InputError, match="did you mean"):
        passes.hoist_if(module, suport_block_scope_hoisting=True)  # type: ignore[call-arg]
    with pytest.raises(tilewright.InputError, match="there is no pass `simplfy`"):
        module.run_pass("simplfy")


def test_a_pass_that_schedules_gives_its_trace() -> None:
    text = """
@T.prim_func
def mm(
    A: T.Buffer((33, 65), "float32"),
    B: T.Buffer((65, 47), "float32"),
    C: T.Buffer((33, 47), "float32"),
):
    for i, j, k in T.grid(33, 47, 65):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
    module = tilewright.parse(text)
    made = passes.auto_schedule(module)
    assert made.trace is not None
    sch = tilewright.Schedule(module)
    sch.run_script(made.trace)
    assert sch.module.diff(made.module) is None
