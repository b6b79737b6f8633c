"""The command ``tilewright``, as pip installs it: that of Rust, in this process."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> int:
    """Runs the command by this process's arguments."""
    # Python would keep an interrupt until the command is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    again = [sys.executable, "-m", "tilewright"]
    return _native.run_command(["tilewright", *sys.argv[1:]], again)
