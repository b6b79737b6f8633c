"""Where things are, and how to get them: paths, the virtual environment, the binary.

This module uses the standard library alone, since it runs before the virtual
environment exists. A script calls `enter()` first and imports numpy and onnx after.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = HERE / ".venv"
WORK = HERE / ".work"
REQUIREMENTS = [
    (HERE / "requirements.txt", []),
    (HERE / "requirements-models.txt", ["--no-deps"]),
]


def enter():
    """Continues in the virtual environment, which is made or brought up to date first.

    Replaces the running process by the same command under the environment's Python,
    unless that is what runs already and the requirements have not changed.
    """
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path, _ in REQUIREMENTS)).hexdigest()
    stamp = VENV / "requirements.sha256"
    fresh = stamp.is_file() and stamp.read_text() == wanted
    if Path(sys.prefix) == VENV and fresh:
        return
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not fresh:
        print(f"setting up {VENV.relative_to(ROOT)}", file=sys.stderr)
        commands = [] if python.exists() else [[sys.executable, "-m", "venv", VENV]]
        for path, options in REQUIREMENTS:
            commands.append([python, "-m", "pip", "install", "--quiet", *options, "-r", path])
        for command in commands:
            if subprocess.run(command, stdout=sys.stderr).returncode != 0:
                sys.exit(f"failed: {' '.join(map(str, command))}")
        stamp.write_text(wanted)
    os.execv(python, [str(python), *sys.argv])


def binary(given):
    """The `tilewright` program: the one given, or a release build of this checkout."""
    if given:
        path = Path(given).resolve()
        if not os.access(path, os.X_OK):
            sys.exit(f"{given} is not a program")
        return path
    command = ["cargo", "build", "--release", "--package", "tilewright-cli", "--bin", "tilewright"]
    command += ["--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit("the release build failed; give a program with --binary")
    for line in reversed(built.stdout.splitlines()):
        executable = json.loads(line).get("executable")
        if executable:
            return Path(executable)
    sys.exit("cargo names no executable; give a program with --binary")
