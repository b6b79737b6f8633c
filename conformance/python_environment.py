"""Virtual environments beside the scripts that need them, and the binary under test.

This module uses the standard library alone, since it runs before a virtual environment exists. A
script calls `enter` first and imports what its requirements bring after.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def enter(folder, requirements, optional=()):
    """Continues in the virtual environment `folder`/.venv, which is made or brought up to date
    first; `requirements` are pairs of a file for pip and further options. What is in the files of
    `optional` is installed one by one, as far as it can be.

    Replaces the running process by the same command under the environment's Python,
    unless that is what runs already and the requirements have not changed.
    """
    venv = folder / ".venv"
    files = [path for path, _ in requirements] + list(optional)
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    stamp = venv / "requirements.sha256"
    fresh = stamp.is_file() and stamp.read_text() == wanted
    if Path(sys.prefix) == venv and fresh:
        return
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not fresh:
        print(f"setting up {venv.relative_to(ROOT)}", file=sys.stderr)
        commands = [] if python.exists() else [[sys.executable, "-m", "venv", venv]]
        for path, options in requirements:
            commands.append([python, "-m", "pip", "install", "--quiet", *options, "-r", path])
        for command in commands:
            if subprocess.run(command, stdout=sys.stderr).returncode != 0:
                print(f"failed: {' '.join(map(str, command))}", file=sys.stderr)
                sys.exit(2)
        for package in packages(optional):
            command = [python, "-m", "pip", "install", "--quiet", package]
            if subprocess.run(command, stdout=sys.stderr).returncode != 0:
                print(f"{package} does not install here; going on without", file=sys.stderr)
        stamp.write_text(wanted)
    os.execv(python, [str(python), *sys.argv])


def packages(files):
    """The lines of requirement files that name something."""
    lines = [line.strip() for path in files for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def binary(given):
    """The `tilewright` program: the one given, or a release build of this checkout."""
    if given:
        path = Path(given).resolve()
        if not os.access(path, os.X_OK):
            print(f"{given} is not a program", file=sys.stderr)
            sys.exit(2)
        return path
    command = ["cargo", "build", "--release", "--package", "tilewright-cli", "--bin", "tilewright"]
    command += ["--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode == 0:
        for line in reversed(built.stdout.splitlines()):
            executable = json.loads(line).get("executable")
            if executable:
                return Path(executable)
    print("the release build gave no program; name one", file=sys.stderr)
    sys.exit(2)
