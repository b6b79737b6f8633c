"""Runs the `tilewright` program on a model and judges what comes back.

The program is used as a user would: tensors go in and out as `.npz` files, the
exit code says how it went (0 done, 2 refused with a diagnostic), and what it
says about time is read from its text.
"""

import re
import subprocess
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
TIMING = re.compile(
    r"\b(import|load|lower|compile|median|spread)\w*\b[^0-9\n]{0,24}?"
    r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(ns|us|µs|μs|ms|s)\b",
    re.IGNORECASE,
)


@dataclass
class Outcome:
    """How one run went. `status` is ok, refused, crashed or timeout."""

    status: str
    reason: str = ""
    outputs: dict = field(default_factory=dict)
    wall: float = 0.0  # seconds for the whole process
    timing: dict = field(default_factory=dict)  # what the program says, in seconds

    @property
    def build_seconds(self):
        """Import and compilation, if the program tells."""
        parts = [self.timing[k] for k in ("import", "load", "lower", "compile") if k in self.timing]
        return sum(parts) if parts else None

    @property
    def run_seconds(self):
        return self.timing.get("median")


@dataclass
class Difference:
    """How far one output is from what was expected. `problem` is empty where it is close."""

    problem: str = ""
    relative: float = 0.0  # max |a - b| / max |b|
    outside: int = 0  # elements outside rtol and atol
    total: int = 0


def save_npz(path, tensors):
    """Writes tensors under any name; `numpy.savez` fails for names such as `file`."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in tensors.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)


def load_npz(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def parse_timing(text):
    """Times named in the program's text, e.g. `compile 1.2 s`, `median: 3.4 ms`."""
    found = {}
    for name, number, unit in TIMING.findall(ANSI.sub("", text)):
        found.setdefault(name.lower(), float(number) * SECONDS[unit.lower()])
    return found


def diagnostic(text):
    """The one line of a diagnostic that says what is wrong."""
    lines = [line.strip() for line in ANSI.sub("", text).splitlines()]
    lines = [line for line in lines if line]
    for marker in ("panicked at", "error", "×"):
        for i, line in enumerate(lines):
            if marker in line.lower():
                if marker == "panicked at":  # the message stands on the next line
                    return " ".join(lines[i : i + 2])
                said = re.sub(r"^(×|error(\[\w+\])?:?)\s*", "", line, flags=re.IGNORECASE)
                return said or (lines[i + 1] if i + 1 < len(lines) else line)
    return lines[0] if lines else ""


def run(
    program, model, inputs, *, dims=None, threads=None, timed=False, timeout=600.0, options=()
):
    """Runs `model` on the tensors in the file `inputs` (None: no inputs), in its own process."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        output = Path(scratch) / "out.npz"
        command = [program, "run", model, "--output", output, *options]
        if inputs is not None:
            command += ["--inputs", inputs]
        for name, size in (dims or {}).items():
            command += ["--dim", f"{name}={size}"]
        if threads is not None:
            command += ["--threads", str(threads)]
        if timed:
            command.append("--time")
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return Outcome("timeout", f"no answer within {timeout:g} s", wall=timeout)
        wall = time.perf_counter() - start
        stdout, stderr = (part.decode(errors="replace") for part in (done.stdout, done.stderr))
        if done.returncode == 2:
            return Outcome("refused", diagnostic(stderr) or "no diagnostic", wall=wall)
        if done.returncode != 0:
            said = diagnostic(stderr)
            how = f"exit code {done.returncode}"
            if done.returncode < 0:
                how = f"killed by signal {-done.returncode}"
            return Outcome("crashed", f"{how}: {said}" if said else how, wall=wall)
        try:
            outputs = load_npz(output)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            return Outcome("crashed", f"exit code 0, but the output is unreadable: {error}")
        return Outcome("ok", "", outputs, wall, parse_timing(stdout + "\n" + stderr))


def difference(actual, expected, rtol, atol):
    """Compares one output with its reference: closely for floats, exactly for all else."""
    if actual.dtype != expected.dtype:
        return Difference(f"dtype {actual.dtype}, expected {expected.dtype}")
    if actual.shape != expected.shape:
        return Difference(f"shape {list(actual.shape)}, expected {list(expected.shape)}")
    if expected.size == 0:
        return Difference()
    a, b = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    if actual.dtype.kind == "f":
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        finite = np.isfinite(a) & np.isfinite(b)
        with np.errstate(invalid="ignore"):
            gap = np.where(same, 0.0, np.where(finite, np.abs(a - b), np.inf))
        outside = gap > atol + rtol * np.where(finite, np.abs(b), 0.0)
    else:
        outside = np.asarray(actual != expected)
        # A difference of wide integers may vanish in float64: it is a difference still.
        gap = np.where(outside, np.maximum(np.abs(a - b), 1.0), 0.0)
    size = np.abs(b[np.isfinite(b)])
    largest = float(size.max()) if size.size else 0.0
    worst = float(gap.max())
    relative = worst / largest if largest > 0 else (0.0 if worst == 0 else float("inf"))
    found = Difference("", relative, int(outside.sum()), expected.size)
    if found.outside:
        at = np.unravel_index(int(np.argmax(gap * outside)), expected.shape)
        found.problem = (
            f"{found.outside} of {found.total} differ, e.g. at {[int(i) for i in at]}: "
            f"{actual[at]!s}, expected {expected[at]!s}"
        )
    return found


def missing_or_extra(actual, expected):
    """What is wrong with the set of output names, or an empty text."""
    missing = [name for name in expected if name not in actual]
    extra = [name for name in actual if name not in expected]
    parts = [f"missing output {missing}"] if missing else []
    parts += [f"unexpected output {extra}"] if extra else []
    return ", ".join(parts)


def table(header, rows):
    """Aligned columns as text; numbers to the right."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    numeric = [
        bool(rows) and all(re.fullmatch(r"[-\d.e+]*|inf|nan", row[i]) for row in cells[1:])
        for i in range(len(header))
    ]
    lines = []
    for row in cells:
        parts = (c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric))
        lines.append("  ".join(parts).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
