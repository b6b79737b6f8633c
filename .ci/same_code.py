#!/usr/bin/env python3
"""Compares the code that two builds of `tilewright` generate.

    .ci/same_code.py BEFORE AFTER [MODEL.onnx ...]

Every case in tests/cases and every model is compiled to LLVM IR by both programs, before LLVM's own
optimisations; what they print and how they end is compared. For a change that must not change code. The exit
code is 1 where something differs; the first lines that differ are printed.
"""

import difflib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECTION = "\n# ---- "
SHOWN = 12


def compiled(tool: str, source: Path) -> tuple[str, str]:
    """What a program prints for a source: code, and messages with how it ended."""
    command = [tool, "compile", "-", "--no-cache", "--emit", "llvm-ir", "--opt-level", "0"]
    if source.suffix == ".onnx":
        command[2] = str(source)
        text = ""
    else:
        text = source.read_text().split(SECTION)[0] + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=600)
    return done.stdout, f"{done.stderr}exit code {done.returncode}\n"


def difference(before: str, after: str, source: Path) -> str | None:
    """What differs for a source, if anything does."""
    old, new = compiled(before, source), compiled(after, source)
    if old == new:
        return None
    lines = [
        line
        for a, b in zip(old, new)
        for line in difflib.unified_diff(a.splitlines(), b.splitlines(), lineterm="", n=0)
    ]
    return "\n".join([f"{source}: {len(lines)} lines", *lines[:SHOWN]])


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    before, after, *models = sys.argv[1:]
    sources = sorted((ROOT / "tests/cases").glob("**/*.py")) + [Path(model) for model in models]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda source: difference(before, after, source), sources))
    for text in filter(None, found):
        print(text)
    count = sum(text is not None for text in found)
    print(f"{count} of {len(sources)} differ")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
