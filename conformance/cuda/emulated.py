#!/usr/bin/env python3
"""Runs a command on a machine without a GPU as if it had one.

    conformance/cuda/emulated.py tilewright run model.onnx --target cuda
    conformance/cuda/emulated.py conformance/onnx/run.py nodes --target cuda --every 20

NVIDIA's driver and its compiler are those of `emulator`: memory, launches and errors as the real ones have them, and
kernels that run as C++ on the CPU, thread by thread. It checks what a GPU does not: barriers and instructions of a
warp that not all threads come to, copies that nobody waits for, writes behind the end of memory. It says nothing
about time. It needs g++ and Python.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

EMULATOR = Path(__file__).resolve().parent / "emulator"


def driver():
    """The library of the emulated driver, made once."""
    source = EMULATOR / "driver.cpp"
    name = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"emulated-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / "libemulated.so"
    if not library.exists():
        made = folder / f"{os.getpid()}.so"
        command = ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", source, "-o", made, "-ldl"]
        subprocess.run(command, check=True)
        os.replace(made, library)
    return str(library)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    library = driver()
    os.environ.update(TILEWRIGHT_CUDA=library, TILEWRIGHT_NVRTC=library, EMULATOR_FOLDER=str(EMULATOR))
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
