from __future__ import annotations

import numpy as np
import pytest
import tilewright
from tilewright import T, te

WIDTH = 5
A = np.arange(12, dtype=np.float32)


@tilewright.script
def scaled(a: T.handle, b: T.handle):  # type: ignore[no-untyped-def]
    n = T.int32()
    A = T.match_buffer(a, (n, WIDTH), "float32")
    B = T.match_buffer(b, (n, WIDTH), "float32")
    for i, j in T.grid(n, WIDTH):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(WIDTH)


def test_a_function_of_python_is_one_of_arrays() -> None:
    for n in (1, 3):
        x = np.arange(n * WIDTH, dtype=np.float32).reshape(n, WIDTH)
        assert (scaled(x) == x * WIDTH).all()
    assert "T.float32(5.0)" in str(scaled)


def test_constants_of_a_closure_are_used() -> None:
    factor, count = 3.0, 7

    @tilewright.script(threads=1)
    @T.prim_func
    def f(A: T.Buffer((count,), "float32"), B: T.Buffer((count,), "float32")):  # type: ignore[no-untyped-def]
        for i in range(count):
            with T.block("B"):
                vi = T.axis.spatial(count, i)
                B[vi] = A[vi] * T.float32(factor)

    assert f(A[:7]).tolist() == (3 * A[:7]).tolist()
    assert f.executable(A[:7]).threads == 1


def test_the_place_of_a_mistake_is_in_the_file() -> None:
    with pytest.raises(tilewright.SyntaxError) as caught:

        @tilewright.script
        def wrong(A: T.Buffer((4,), "float32")):  # type: ignore[no-untyped-def]
            A[0] = UNKNOWN[0]  # noqa: F821

    place = caught.value.place
    assert place is not None
    assert place.file == __file__
    with open(__file__) as file:
        assert "UNKNOWN[0]  # noqa" in file.read().splitlines()[place.line - 1]


def test_text_is_a_script_and_source_is_needed() -> None:
    made: dict[str, object] = {}
    exec("def f(A): pass", made)
    with pytest.raises(tilewright.InputError, match="source"):
        tilewright.script(made["f"])  # type: ignore[call-overload]


def test_elements_are_written_once() -> None:
    a = te.placeholder("A", (3, 4))
    k = te.reduce_axis(4, "k")
    total = te.compute("S", (3,), lambda i: te.sum(a[i, k], k))
    top = te.compute("M", (3,), lambda i: te.max(a[i, k], k))
    soft = te.compute("E", (3, 4), lambda i, j: te.exp(a[i, j] - top[i]) / 2)
    x = A.reshape(3, 4)
    s, m, e = te.func([a], [total, top, soft])(x)
    np.testing.assert_allclose(s, x.sum(1))
    np.testing.assert_allclose(m, x.max(1))
    np.testing.assert_allclose(e, np.exp(x - x.max(1, keepdims=True)) / 2, rtol=1e-6)


def test_conditions_and_casts() -> None:
    a = te.placeholder("A", (12,), "int64")
    b = te.compute("B", (12,), lambda i: te.select((i >= 3) & ~(a[i] == 5), te.cast(a[i], "float32"), -1.0))
    x = np.arange(12)
    assert te.func([a], [b])(x).tolist() == [-1, -1, -1, 3, 4, -1, *range(6, 12)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: te.compute("B", (3,), lambda i, j: a[i, j]), "tensor `B`: the function for 1 axes"),
        (lambda a: te.compute("B", (3,), lambda i: a[i]), "`A` has 2 axes, and was given 1 indices"),
        (
            lambda a: te.compute("B", (3,), lambda i: "x"),
            "expected an expression or a number, found str",
        ),
        (lambda a: te.compute("B", (3,), lambda i: a[0.5, i]), "the float 0.5 stands where a int32 is"),
        (lambda a: te.compute("B", (3,), lambda i: a[i, 0] if i < 2 else 0.0), "not known while"),
    ],
)
def test_mistakes_are_errors(make: object, message: str) -> None:
    with pytest.raises((tilewright.InputError, TypeError), match=message):
        make(te.placeholder("A", (3, 4)))  # type: ignore[operator]
    with pytest.raises(AttributeError, match="no attribute `expp`"):
        te.expp


def test_stages_of_a_schedule_are_laid_out() -> None:
    a = te.placeholder("A", (2, 8))
    b = te.compute("B", (2, 8), lambda i, j: a[i, j] * 2)
    s = te.create_schedule([a], [b])
    s[b].transform_layout(lambda i, j: [j // 4, i, j % 4])
    (loop, *_) = s.get_loops("B")
    assert loop.name
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    y = s.module.compile(threads=1)(x)
    assert (y == 2 * x.reshape(2, 2, 4).transpose(1, 0, 2)).all()
