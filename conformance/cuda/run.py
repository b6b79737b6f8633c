#!/usr/bin/env python3
"""Whether NVIDIA's assembler takes the kernels of models, without a GPU.

    conformance/cuda/run.py MODEL ...        models or modules as text, for sm_80 and sm_90
    conformance/cuda/run.py                  the models that conformance/onnx/run.py prepare made

Each model is compiled to PTX (`tilewright compile --target cuda:sm_80 -o model.ptx`), which `ptxas -v` assembles.
The table says how many kernels there are, the most registers of one, the most memory that a group shares, and which
kernels spill registers to memory. A kernel that is refused fails, and one with shared memory that spills; one that
runs as a single thread, such as a recurrent network, may. Of contractions whose groups share operands the schedule
says how many registers it expects a thread to take at most, and how many bytes are shared: more of either fails. Both tools are in packages
of Python's index (`pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvcc-cu12`): run this by the Python of
that environment, or name them by TILEWRIGHT_NVRTC and --ptxas.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "onnx/.work/models"


def packages():
    """Folders of NVIDIA's packages in this environment."""
    return [p for entry in sys.path for p in Path(entry).glob("nvidia/*")]


def assembler(given):
    """The path of ptxas."""
    found = [p / "bin/ptxas" for p in packages() if (p / "bin/ptxas").exists()]
    path = given or shutil.which("ptxas") or (str(found[0]) if found else None)
    if path is None:
        sys.exit("there is no ptxas: pip install nvidia-cuda-nvcc-cu12, or --ptxas FILE")
    os.chmod(path, 0o755) if not os.access(path, os.X_OK) else None
    return path


def check(program, ptxas, model, architecture, folder):
    """What ptxas says of the kernels of a model: a line, and whether all is well."""
    ptx = Path(folder) / "model.ptx"
    command = [program, "compile", model, "--target", f"cuda:{architecture}", "-o", ptx]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        return f"refused: {made.stderr.strip()[:600]}", False
    command = [ptxas, "-v", f"-arch={architecture}", ptx, "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return f"ptxas: {done.stderr.strip()[:600]}", False
    kernels = re.findall(
        r"entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers(.*?)$",
        done.stderr,
        re.DOTALL | re.MULTILINE,
    )
    registers = [int(used) for _, _, used, _ in kernels]
    shared = [int(n) for *_, rest in kernels for n in re.findall(r"(\d+) bytes smem", rest)]
    spilled = {name: "smem" in rest for name, stores, _, rest in kernels if int(stores) > 0}
    expected = expectations(program, model, architecture, folder)
    wrong, parts = [], []
    for name, _, used, rest in kernels:
        if name in expected:
            most, bytes_shared = expected[name]
            has = sum(int(n) for n in re.findall(r"(\d+) bytes smem", rest))
            parts.append(int(used) / most)
            if int(used) > most or has > bytes_shared:
                wrong.append(f"{name}: {used} registers, {has} bytes shared, {most} and {bytes_shared} expected")
    row = f"{len(kernels)} kernels, at most {max(registers, default=0)} registers, {max(shared, default=0)} bytes shared"
    if parts:
        row += f"; registers over expected ones {min(parts):.2f} to {max(parts):.2f}"
    row += "".join(f"; {name} spills" for name in spilled) + "".join(f"\n    {line}" for line in wrong)
    return row, bool(kernels) and not any(spilled.values()) and not wrong


def expectations(program, model, architecture, folder):
    """What schedules expect of kernels: registers of a thread and bytes that a group shares, by their names."""
    text = Path(folder) / "model.cu"
    command = [program, "compile", model, "--target", f"cuda:{architecture}", "-o", text]
    subprocess.run(command, check=True, capture_output=True)
    line = re.compile(r"(\w+)\([^()]*\) over groups [^(),]*, at most (\d+) registers, (\d+) bytes shared")
    return {name: (int(most), int(shared)) for name, most, shared in line.findall(text.read_text())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--binary", default="tilewright", help="the program (default: `tilewright`)")
    parser.add_argument("--ptxas", help="NVIDIA's assembler")
    parser.add_argument("--architectures", nargs="+", default=["sm_80", "sm_90"])
    args = parser.parse_args()
    ptxas = assembler(args.ptxas)
    library = [f for p in packages() for f in p.glob("lib/libnvrtc.so.*") if "builtins" not in f.name]
    if library:
        os.environ.setdefault("TILEWRIGHT_NVRTC", str(library[0]))
    models = args.models or sorted(MODELS.glob("*.onnx"))
    all_well = bool(models)
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            for architecture in args.architectures:
                row, well = check(args.binary, ptxas, model, architecture, folder)
                all_well &= well
                print(f"{model.stem:24} {architecture}: {row}", flush=True)
    sys.exit(0 if all_well else 1)


if __name__ == "__main__":
    main()
