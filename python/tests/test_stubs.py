"""The stubs say what the module has."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import tilewright
from tilewright import _stubs

FOLDER = pathlib.Path(tilewright.__file__).parent


@pytest.mark.parametrize("name", ["schedule", "passes"])
def test_stubs_of_tables_are_those_of_the_tables(name: str) -> None:
    written = (FOLDER / f"{name}.pyi").read_text(encoding="utf-8")
    assert written == getattr(_stubs, f"{name}_stub")(), "run `python -m tilewright._stubs`"


def test_the_stub_of_the_extension_fits_it(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "tilewright._native", "--concise"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
