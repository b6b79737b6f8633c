#!/usr/bin/env python3
"""Kernels in CUDA C++ to a shared library of the host: compile.py TEXT.cu LIBRARY.so

Inline PTX becomes a call of `emulated::ptx` with its operands, and each kernel gets a function that takes the
parameters of a launch. All else is C++ behind machine.hpp.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNEL = re.compile(r"__(?:kernel|global__)\b[^;{}]*?\bvoid\s+(\w+)\s*\(")
COMPILER = ["g++", "-std=c++17", "-O1", "-w", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-march=native"]
WAITS = re.compile(r"\bbarrier\(|__sync(?:threads|warp)\(|__shfl_\w*sync\(|\bemulated::ptx\(")


def closing(text, at):
    """Where the bracket at a place closes; brackets in strings do not count."""
    depth, quoted = 0, False
    while True:
        c = text[at]
        if c == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif not quoted and c in "([{":
            depth += 1
        elif not quoted and c in ")]}":
            depth -= 1
            if depth == 0:
                return at
        at += 1


def parts(text, separator):
    """Splits at a separator outside of brackets and strings."""
    found, start, at = [], 0, 0
    quoted = False
    while at < len(text):
        if text[at] == '"':
            quoted = not quoted
        elif not quoted and text[at] in "([{":
            at = closing(text, at)
        elif not quoted and text[at] == separator:
            found.append(text[start:at])
            start = at + 1
        at += 1
    return [p.strip() for p in [*found, text[start:]]]


def operand(text, is_output):
    constraint, value = re.fullmatch(r'"([^"]*)"\s*\((.*)\)', text, re.DOTALL).groups()
    kind = constraint.lstrip("=+&")
    types = {"r": "uint32_t", "f": "float", "h": "uint16_t", "l": "uint64_t", "d": "double"}
    if is_output:
        return f"emulated::out('{kind}', {value})"
    return f"emulated::in<{types[kind]}>('{kind}', {types[kind]}({value}))" if kind != "l" else f"emulated::in<uint64_t>('l', (uint64_t)({value}))"


def without_ptx(text):
    """The text with calls for its inline PTX."""
    out = ""
    while True:
        found = re.search(r"\basm\s*(?:volatile)?\s*\(", text)
        if not found:
            return out + text
        end = closing(text, found.end() - 1)
        code, *rest = parts(text[found.end() : end], ":")
        code = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', code))
        outputs, inputs = ([p for p in parts(group, ",") if p] for group in (rest + ["", ""])[:2])
        operands = [operand(o, True) for o in outputs] + [operand(i, False) for i in inputs]
        out += f'{text[: found.start()]}emulated::ptx("{code}", {{{", ".join(operands)}}})'
        text = text[end + 1 :]


def header():
    """machine.hpp beside what the compiler read of it, made once."""
    text = (HERE / "machine.hpp").read_bytes()
    name = hashlib.sha256(text + " ".join(COMPILER).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"emulated-{os.getuid()}-{name}"
    made = folder / "machine.hpp"
    if not (folder / "machine.hpp.gch").exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".gch", delete=False) as file:
            subprocess.run([*COMPILER, "-x", "c++-header", HERE / "machine.hpp", "-o", file.name], check=True)
        made.write_bytes(text)
        os.replace(file.name, folder / "machine.hpp.gch")
    return made


def main():
    source, library = sys.argv[1:]
    text = without_ptx(Path(source).read_text())
    waits = "true" if WAITS.search(text.split("__kernel GROUP_SIZE", 1)[-1]) or "emulated::ptx" in text else "false"
    thunks = "".join(
        f'extern "C" void {name}_thunk(void **given) {{ emulated::call({name}, given); }}\n'
        f'extern "C" bool {name}_waits; bool {name}_waits = {waits};\n'
        for name in KERNEL.findall(text)
    )
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write(f'#line 1 "{source}"\n{text}\n{thunks}')
        file.flush()
        command = [*COMPILER, "-include", header(), "-shared", file.name, "-o", library]
        sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
