"""Programs that several tests use."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import tilewright
from tilewright import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _own_caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes into the measurements of the user."""
    monkeypatch.setenv("TILEWRIGHT_TUNING", "off")


@pytest.fixture(scope="session")
def digits() -> str:
    """A small network."""
    return str(ROOT / "examples/digits/digits.onnx")


#: Two inputs, two outputs.
TWO = """
@T.prim_func
def two(a: T.handle, b: T.handle, c: T.handle, d: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 3), "float32")
    B = T.match_buffer(b, (n, 3), "float32")
    C = T.match_buffer(c, (n, 3), "float32")
    D = T.match_buffer(d, (n, 3), "float32")
    for i, j in T.grid(n, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi, vj]
    for i, j in T.grid(n, 3):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi, vj] * B[vi, vj]
"""


def elementwise(dtype: str, count: int = 6, expression: str = "A[vi]") -> str:
    """A function of one vector."""
    return f"""
@T.prim_func
def f(A: T.Buffer(({count},), "{dtype}"), B: T.Buffer(({count},), "{dtype}")):
    for i in range({count}):
        with T.block("B"):
            vi = T.axis.spatial({count}, i)
            B[vi] = {expression}
"""


def long_function(loops: int) -> str:
    """A function of so many loops, one after the other."""
    nests = "\n".join(
        f"""
    for i in range(64):
        with T.block("b{k}"):
            vi = T.axis.spatial(64, i)
            A{k + 1}[vi] = T.exp(A{k}[vi]) + T.sin(A{k}[vi]) * T.float32({k})
"""
        for k in range(loops)
    )
    buffers = "\n".join(f'    A{k} = T.alloc_buffer((64,), "float32")' for k in range(1, loops))
    return f"""
@T.prim_func
def f(A0: T.Buffer((64,), "float32"), A{loops}: T.Buffer((64,), "float32")):
{buffers}
{nests}
"""


def check_interrupt(program: str, after: float) -> None:
    """Another process runs a program that says when it is ready, and is interrupted some seconds later."""
    # What starts these tests may ignore interrupts, as shells do for what runs in the background.
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", heard + program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        took = time.monotonic() - start
        assert process.wait(60) == 0
    assert took < 1


@pytest.fixture
def double() -> tilewright.Module:
    """Twice a vector of 14 floats."""
    return tilewright.parse(elementwise("float32", 14, "A[vi] * T.float32(2)"))


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """What sessions say of their compilations."""
    said: list[str] = []
    ort.set_default_logger_callback(lambda severity, category, name, place, message: said.append(message), 1)
    yield said
    ort.set_default_logger_callback(None)
    ort.set_default_logger_severity(2)
