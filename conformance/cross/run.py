#!/usr/bin/env python3
"""Checks code for other machines under an emulator: models, and random programs.

    conformance/cross/run.py [--tilewright PROGRAM] [--only TARGET] [--count N]

Models are compiled for the other machine as shared and as static libraries, called from C, and their outputs
compared with ONNX Runtime's on this one. Random programs are those of `conformance/random`, with its oracle.
Needs qemu-user and gcc for the other machines: on Debian
`apt-get install qemu-user gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu`. The exit code is 1 if anything was
wrong, and 2 if something is missing.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import python_environment  # noqa: E402

if __name__ == "__main__":
    python_environment.enter(HERE, [(HERE / "requirements.txt", [])])

import emulator  # noqa: E402
import models  # noqa: E402
import numpy as np  # noqa: E402

RANDOM = HERE.parent / "random" / "run.py"


def difference(found, expected, tolerance):
    """What is wrong with outputs, or nothing."""
    if sorted(found) != sorted(expected):
        return f"outputs {sorted(found)}, not {sorted(expected)}"
    for name, want in expected.items():
        got = found[name]
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            return f"{name} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        scale = np.max(np.abs(want.astype(np.float64)), initial=1e-6)
        error = np.max(np.abs(got.astype(np.float64) - want.astype(np.float64)), initial=0.0) / scale
        if not error <= tolerance:
            return f"{name} differs by {error:.2e} of its largest value, {tolerance:.0e} is allowed"
    return None


def check_models(emulated, folder, only):
    """How many models were wrong."""
    wrong = 0
    for model in models.all_models(folder):
        if only and only not in model.name:
            continue
        for form in ["so", "a"]:
            start = time.monotonic()
            try:
                found = emulated.run(model.path, model.inputs, form=form)
                problem = difference(found, model.expected(), model.tolerance)
            except emulator.Failed as failed:
                problem = f"exit code {failed.code}: {str(failed).strip()[:600]}"
            wrong += problem is not None
            said = f"WRONG: {problem}" if problem else "same values"
            name = f"{emulated.target.name}: {model.name} (.{form})"
            print(f"{name}: {said} ({time.monotonic() - start:.0f} s)", flush=True)
    return wrong


def check_random(emulated, folder, count, seed):
    """Whether random programs were wrong."""
    wrapper = emulated.wrapper(folder / f"tilewright-{emulated.target.name}")
    command = [sys.executable, RANDOM, "--kind", "programs", "--count", count, "--seed", seed]
    command += ["--timeout", 120, "--tilewright", wrapper, "--output", HERE / ".work"]
    print(f"{emulated.target.name}: random programs", flush=True)
    return subprocess.run(list(map(str, command))).returncode != 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tilewright", help="the program (default: a release build)")
    parser.add_argument("--only", choices=list(emulator.TARGETS), help="one target")
    parser.add_argument("--model", help="only models whose name contains this")
    parser.add_argument("--count", type=int, default=200, help="random programs for each target")
    parser.add_argument("--seed", type=int, default=1, help="of the first of them")
    given = parser.parse_args()
    tilewright = python_environment.binary(given.tilewright)
    targets = [t for t in emulator.TARGETS.values() if given.only in (None, t.name)]
    missing = sorted({tool for target in targets for tool in target.missing()})
    if missing:
        print(f"not on this machine: {', '.join(missing)}", file=sys.stderr)
        print(__doc__, file=sys.stderr)
        return 2
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="tilewright-cross-") as folder:
        for target in targets:
            emulated = emulator.Emulated(tilewright, target)
            wrong += check_models(emulated, Path(folder), given.model)
            if given.count > 0:
                wrong += check_random(emulated, Path(folder), given.count, given.seed)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
