from __future__ import annotations

import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tilewright
from conftest import ROOT, elementwise


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("saved") / "digits.twm"
    module = tilewright.load(ROOT / "examples/digits/digits.onnx", dims={"N": 3})
    module.compile(threads=2).save(path)
    return path


X = np.random.default_rng(0).random((3, 1, 8, 8), dtype=np.float32)


def test_a_saved_model_gives_the_same(saved: pathlib.Path, digits: str) -> None:
    exe = tilewright.open(saved)
    wanted = tilewright.load(digits, dims={"N": 3}).compile(threads=2)
    for got, expected in zip(exe(X), wanted(X)):
        assert (got == expected).all()
    assert (exe.inputs, exe.outputs) == (wanted.inputs, wanted.outputs)
    assert exe.threads == 2
    assert tilewright.open(saved, threads=1).threads == 1
    assert exe.module is None
    again = pickle.loads(pickle.dumps(exe))
    assert (again(X)[0] == exe(X)[0]).all()


def test_versions_for_sizes_are_saved(tmp_path: pathlib.Path, digits: str) -> None:
    wanted = tilewright.load(digits).compile(specialize=[{"N": 3}, {"N": 7}])
    wanted.save(tmp_path / "digits.twm")
    exe = tilewright.open(tmp_path / "digits.twm")
    for count in (3, 5, 7):
        x = np.random.default_rng(count).random((count, 1, 8, 8), dtype=np.float32)
        for got, expected in zip(exe(x), wanted(x)):
            assert (got == expected).all()
    assert exe.inputs == wanted.inputs


def test_a_saved_model_starts_without_llvm(saved: pathlib.Path) -> None:
    """Where there is no LLVM, nothing can be compiled, and a saved model runs."""
    program = f"""
import numpy as np, tilewright
exe = tilewright.open({str(saved)!r})
assert exe(np.zeros((3, 1, 8, 8), np.float32))[0].shape == (3, 10)
try:
    tilewright.parse({elementwise("float32")!r}).compile(cache=False)
except tilewright.ToolchainError:
    print("no LLVM")
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "/usr/bin:/bin", "TILEWRIGHT_LLVM": "/nowhere/libLLVM.so", **_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "no LLVM\n", run.stderr


def _path() -> dict[str, str]:
    return {"PYTHONPATH": str(pathlib.Path(tilewright.__file__).parents[1])}


def test_an_access_out_of_range_still_ends_the_run(tmp_path: pathlib.Path) -> None:
    text = """
@T.prim_func
def gather(A: T.Buffer((4,), "float32"), I: T.Buffer((2,), "int32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            B[vi] = A[I[vi]]
"""
    tilewright.parse(text).compile(threads=1).save(tmp_path / "gather")
    exe = tilewright.open(tmp_path / "gather")
    a = np.arange(4, dtype=np.float32)
    assert exe(a, np.array([3, 0], np.int32)).tolist() == [3, 0]
    with pytest.raises(tilewright.ExecutionError, match=r"`A\[7\]` is out of range"):
        exe(a, np.array([7, 0], np.int32))


def test_damage_is_found(saved: pathlib.Path, tmp_path: pathlib.Path) -> None:
    good = saved.read_bytes()
    broken = tmp_path / "broken"
    for at in (40, 70, 200, len(good) // 2, len(good) - 1):
        bad = bytearray(good)
        bad[at] ^= 1
        broken.write_bytes(bytes(bad))
        with pytest.raises(tilewright.Error, match=r"damaged|version"):
            tilewright.open(broken)
    for count in (0, 10, 30, 60, 1000, len(good) - 1):
        broken.write_bytes(good[:count])
        with pytest.raises(tilewright.ModelError, match=r"damaged|no compiled model"):
            tilewright.open(broken)
    newer = bytearray(good)
    newer[16] = 99
    broken.write_bytes(bytes(newer))
    with pytest.raises(tilewright.UnsupportedError, match="version 99"):
        tilewright.open(broken)
    with pytest.raises(tilewright.FileError):
        tilewright.open(tmp_path / "nothing")
