"""The pages of `docs/guide` in Python run as they are printed: their code in order, in a folder that has
the examples, and what it prints as the page says.

A page may write a picture of its own name, which stands beside it: `UPDATE_EXPECT=1` writes it again.
Pages on the command line are run by the tests of the command, and code in Rust by the facade's.
"""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from conftest import ROOT

GUIDE = ROOT / "docs/guide"
PAGES = sorted(GUIDE.glob("[0-9]*-*.md"), key=lambda page: int(page.name.partition("-")[0]))
PYTHON = [page for page in PAGES if "\n```sh\n" not in page.read_text(encoding="utf-8")]


def blocks(page: str) -> list[tuple[int, str, str]]:
    """The line, the language and the text of each block of code."""
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [(page[: m.start()].count("\n") + 2, m[1], m[2]) for m in found]


def shape_of(svg: str) -> list[str]:
    """What is in a picture, without places and colours, which machines may decide."""
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return sorted({element.tag for element in root.iter()})


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: p.stem)
def test_a_page_runs(path: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    page = path.read_text(encoding="utf-8")
    for package in ("torch", "onnxscript") if "import torch\n" in page else ():
        pytest.importorskip(package, exc_type=ImportError)
    printed = ""
    for line, language, text in blocks(page):
        if language == "python":
            assert not printed.strip(), f"{path.name}:{line}: what is printed is not on the page"
            out = io.StringIO()
            code = compile("\n" * (line - 1) + text, str(path), "exec")
            with contextlib.redirect_stdout(out):
                exec(code, names)
            printed = out.getvalue()
        elif language != "rust":
            assert printed == text, f"{path.name}:{line}"
            printed = ""
    assert not printed.strip()
    file = path.with_suffix(".svg")
    drawn = tmp_path / file.name
    assert drawn.exists() == file.exists() == (f"({file.name})" in page)
    if not drawn.exists():
        return
    made = drawn.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_EXPECT"):
        file.write_text(made, encoding="utf-8")
    assert shape_of(file.read_text(encoding="utf-8")) == shape_of(made)


def test_every_page_is_listed() -> None:
    listed = re.findall(r"\((\d+-.*?\.md)\)", (GUIDE / "README.md").read_text(encoding="utf-8"))
    assert listed == [page.name for page in PAGES]
    assert PYTHON
