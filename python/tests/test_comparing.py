from __future__ import annotations

import tilewright
from conftest import TWO, elementwise


def test_a_schedule_is_proved_to_keep_what_is_computed(double: tilewright.Module) -> None:
    sch = tilewright.Schedule(double)
    (loop,) = sch.get_loops("B")
    sch.split(loop, [None, 4])
    found = tilewright.verify(double, sch.module)
    assert found
    assert found.answer == "equal"
    assert found.notes
    assert found.witness is None


def test_a_difference_comes_with_data_that_show_it() -> None:
    a = tilewright.parse(elementwise("int32", 4, "A[vi] * 3"))
    b = tilewright.parse(elementwise("int32", 4, "A[vi] * 3 + vi // 3"))
    found = tilewright.verify(a, b)
    assert not found
    assert found.witness is not None
    assert found.witness.cell == "B[3]"
    assert found.witness.values[0] != found.witness.values[1]
    assert "differs in `B`[3]" in str(found)


def test_open_sizes_are_tried() -> None:
    a = tilewright.parse(TWO)
    b = tilewright.parse(TWO.replace("A[vi, vj] + B[vi, vj]", "A[vi, vj] - B[vi, vj]"))
    assert tilewright.verify(a, a)
    assert tilewright.verify(a, b).answer == "differ"
    assert tilewright.verify(a, b, dims={"n": 0}).answer == "equal"
