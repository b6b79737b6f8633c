"""The command ``tilewright``, as the package has it."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
import time

import tilewright


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tilewright", *arguments], capture_output=True, text=True)


def test_the_command_is_that_of_rust(digits: str) -> None:
    assert run("--version").stdout == f"tilewright {tilewright.__version__}\n"
    done = run("run", digits, "--dim", "N=2")
    assert done.returncode == 0, done.stderr
    assert "probabilities" in done.stdout
    done = run("run", "there/is/no/such.onnx")
    assert done.returncode == 2
    assert "such.onnx" in done.stderr
    assert run("no-such-command").returncode == 2


def test_it_starts_itself_again_to_measure(digits: str, tmp_path: pathlib.Path) -> None:
    done = run("tune", digits, "--dim", "N=3", "--budget", "1s", "--file", str(tmp_path / "times"))
    assert done.returncode == 0, done.stderr
    assert "measured" in done.stdout
    assert "failed" not in done.stdout


def test_an_interrupt_ends_it() -> None:
    # It waits for a module from its standard input.
    command = [sys.executable, "-m", "tilewright", "opt", "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(2.0)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    process.wait(10)
    assert time.monotonic() - start < 1.0
    assert process.returncode == -signal.SIGINT
