"""Where things are, and how to get them: paths, the virtual environment, the binary.

This module uses the standard library alone, since it runs before the virtual
environment exists. A script calls `enter()` first and imports numpy and onnx after.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import python_environment  # noqa: E402
from python_environment import ROOT, binary  # noqa: E402, F401

WORK = HERE / ".work"
REQUIREMENTS = [
    (HERE / "requirements.txt", []),
    (HERE / "requirements-models.txt", ["--no-deps"]),
]


def enter():
    """Continues in the virtual environment beside this file."""
    python_environment.enter(HERE, REQUIREMENTS)


def enter_exports():
    """Continues in the virtual environment of the exports, which holds PyTorch."""
    folder = HERE / ".exports"
    folder.mkdir(exist_ok=True)
    python_environment.enter(folder, [(HERE / "requirements-exports.txt", [])])
