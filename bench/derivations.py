#!/usr/bin/env python3
"""Times the derivations of tests/cases/options: from the logical function to the final code.

    cargo build --release -p tilewright-cli
    bench/derivations.py            all of them
    bench/derivations.py matmul     those whose name contains this

Each file is a function, the schedule that is applied to it, and the passes after it. The time is
that of the whole process, the best of some runs; needs only Python.
"""

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "target" / "release" / "tilewright"
RUNS = 7


def parts(text):
    """The command, the function and the schedule of a file test."""
    command = re.search(r"^# run: (.*)$", text, re.MULTILINE).group(1)
    function, *rest = re.split(r"^# ---- (\w+).*$", text, flags=re.MULTILINE)
    return shlex.split(command), function, dict(zip(rest[::2], rest[1::2])).get("schedule")


def best(command):
    """The shortest of some runs, in milliseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main():
    if not BINARY.exists():
        sys.exit("no release build: cargo build --release -p tilewright-cli")
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        cases = sorted((ROOT / "tests" / "cases" / "options").glob("*.py"))
        for path in [path for path in cases if wanted in path.stem]:
            command, function, schedule = parts(path.read_text())
            module = pathlib.Path(folder, path.name)
            module.write_text(function)
            command = [str(BINARY), *command, str(module)]
            if schedule is not None:
                script = pathlib.Path(folder, "schedule.py")
                script.write_text(schedule)
                command += ["--schedule", str(script)]
            print(f"{path.stem:24}{best(command):8.1f} ms")


if __name__ == "__main__":
    main()
