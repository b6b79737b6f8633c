#!/usr/bin/env python3
"""Tests a wheel where there are no toolchains: it is installed and used as the README says.

    packaging/test_wheel.py WHEEL

Makes a root with Python, the libraries that it needs and those that manylinux promises, and nothing else,
and runs in it by `unshare` and `chroot`. Where that is not permitted, it says so, and hides the toolchains
of this machine by an empty environment. Needs a package index for pip and NumPy.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent

#: The C library of manylinux2014.
GLIBC = (2, 17)

#: What manylinux promises beside the C library, and Python may not need itself.
PROMISED = ["libgcc_s.so.1", "libstdc++.so.6", "libz.so.1"]

#: The C library's parts, which are one in newer ones.
GLIBC_PARTS = ["libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1"]

#: What a machine without toolchains does not have.
TOOLS = ["cc", "gcc", "clang", "ld", "ld.lld", "as", "rustc", "cargo", "llc"]

#: The folders of the system's libraries, for what `ldd` is not asked about.
LIBRARIES = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64",
             "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]  # fmt: skip


def die(message: str) -> NoReturn:
    print(f"test_wheel: {message}", file=sys.stderr)
    sys.exit(1)


def run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True)


def elf_versions(file: Path) -> set[tuple[int, ...]]:
    """The versions of glibc that a library asks for."""
    text = subprocess.run(["readelf", "-V", file], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"Name: GLIBC_([0-9.]+)", text)
    return {tuple(int(part) for part in version.split(".")) for version in found}


def check_glibc(wheel: Path) -> None:
    """That no library in the wheel asks for a newer glibc than its name says."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if ".so" in Path(name).name]
        if len(libraries) < 2:
            die(f"{wheel.name} has {libraries}; the extension and libLLVM are expected")
        for name in libraries:
            versions = elf_versions(Path(archive.extract(name, folder)))
            if not versions:
                die(f"{name} asks for no glibc, which cannot be")
            newest = ".".join(map(str, max(versions)))
            print(f"test_wheel: {name}: glibc {newest}")
            if max(versions) > GLIBC:
                die(f"{name} asks for glibc {newest}")


def needed(files: list[Path]) -> set[Path]:
    """The shared libraries that files load, and the dynamic linker."""
    found: set[Path] = set()
    for file in files:
        said = subprocess.run(["ldd", file], capture_output=True, text=True).stdout
        found.update(Path(path) for path in re.findall(r"(/\S+) \(0x", said))
    return found


def promised() -> set[Path]:
    found = set()
    for name in PROMISED + GLIBC_PARTS:
        files = [Path(folder, name) for folder in LIBRARIES if Path(folder, name).exists()]
        if not files:
            die(f"{name}, which manylinux promises, is not on this machine")
        found.add(files[0])
    return found


def copy_into(root: Path, path: Path) -> None:
    """Copies a file to its own place in a root."""
    target = root / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy2(path.resolve(), target)


def make_root(root: Path) -> Path:
    """A root with Python and nothing else; Python's path in it."""
    python = Path(os.path.realpath(sys.executable))
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()
    skipped = shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__", "config-*")
    shutil.copytree(stdlib, root / stdlib.relative_to("/"), ignore=skipped, symlinks=False)
    copy_into(root, python)
    modules = list((root / stdlib.relative_to("/")).glob("lib-dynload/*.so"))
    for library in needed([python, *modules]) | promised():
        copy_into(root, library)
    for folder in ["proc", "sys", "dev", "tmp", "home"]:
        (root / folder).mkdir(exist_ok=True)
    # Libraries are found by their folders.
    copied = {file.parent for file in root.rglob("*.so*") if "lib-dynload" not in file.parts}
    conf = root / "etc/ld.so.conf"
    conf.parent.mkdir(exist_ok=True)
    conf.write_text("".join(f"/{folder.relative_to(root)}\n" for folder in sorted(copied)))
    subprocess.run(["/sbin/ldconfig", "-r", root], check=True)
    return python


def example() -> str:
    """The README's example in Python, with a check of what it computes."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    found = [block for block in blocks if "import numpy as np, tilewright" in block]
    if len(found) != 1:
        die("the README has another example in Python than this script knows")
    check = """
expected = np.load("examples/digits/test_expected.npz")
for name, got in zip(expected.files, (logits, probabilities)):
    np.testing.assert_allclose(got, expected[name], rtol=1e-4, atol=1e-4)
print("the README's example computes what is expected")
"""
    return found[0] + check


def commands(digits: str) -> list[tuple[str, list[str], int, str]]:
    """What is run by the command: why, its arguments, the expected exit code, what it says."""
    files = ["--inputs", f"{digits}/test_inputs.npz", "--expect", f"{digits}/test_expected.npz"]
    model = f"{digits}/digits.onnx"
    return [
        ("a model runs", ["run", model, *files], 0, ""),
        ("a plan is shown", ["plan", model], 0, "proved to be the least"),
        ("an object file needs no compiler", ["compile", model, "--output", "digits.o"], 0, ""),
        ("a library needs one, and says so", ["compile", model, "--output", "digits.so"], 2, "C compiler"),
        ("kernels are measured", ["tune", model, "--budget", "2s"], 0, "measured"),
        ("a wrong input is refused", ["run", "missing.onnx"], 2, "missing.onnx"),
    ]


#: Runs in the root: checks it, installs, and uses what is installed.
INSIDE = r'''
import os, shutil, subprocess, sys, sysconfig

work, wheels, commands, tools = ARGUMENTS
os.chdir(work)
for tool in tools:
    if shutil.which(tool):
        sys.exit(f"test_wheel: {tool} is there: {shutil.which(tool)}")
pip = [name for name in os.listdir(wheels) if name.startswith("pip-")][0]
own = [name for name in os.listdir(wheels) if name.startswith("tilewright-")][0]
venv = os.path.join(work, "venv")
subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--copies", venv], check=True)
python = os.path.join(venv, "bin", "python")
subprocess.run(
    [python, os.path.join(wheels, pip, "pip"), "install", "--quiet", "--no-index",
     "--find-links", wheels, os.path.join(wheels, own)], check=True)
print("test_wheel: installed", own)
os.environ["PATH"] = os.path.join(venv, "bin")
subprocess.run([python, "example.py"], check=True)
for why, arguments, code, text in commands:
    done = subprocess.run(["tilewright", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != code or text not in done.stdout:
        sys.exit(f"test_wheel: FAILED: {why}: exit code {done.returncode}\n{done.stdout}")
    print("test_wheel: ok:", why)
done = subprocess.run(["tilewright", "doctor"], stdout=subprocess.PIPE, text=True)
print(done.stdout)
lines = [line for line in done.stdout.splitlines() if line.startswith("LLVM: ")]
if done.returncode != 0 or len(lines) != 1 or os.path.join("tilewright", "lib", "libLLVM") not in lines[0]:
    sys.exit("test_wheel: FAILED: `doctor` does not find the LLVM of the package")
'''


def inside(work: str, digits: str) -> str:
    arguments = (work, f"{work}/wheels", commands(digits), TOOLS)
    return INSIDE.replace("ARGUMENTS", repr(arguments))


def can_unshare() -> bool:
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "true"], capture_output=True, check=False
    )
    return done.returncode == 0


def fill(work: Path, wheel: Path) -> None:
    """What is used in the root."""
    wheels = work / "wheels"
    wheels.mkdir(parents=True)
    shutil.copy2(wheel, wheels)
    run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--only-binary=:all:", "--dest", wheels, "numpy", "pip")  # fmt: skip
    shutil.copytree(ROOT / "examples/digits", work / "examples/digits")
    (work / "example.py").write_text(example(), encoding="utf-8")


def test(wheel: Path, folder: Path) -> None:
    script = folder / "home/inside.py"
    if not can_unshare():
        print("test_wheel: NOTE: no namespaces here; an empty environment hides the toolchains")
        work = folder / "home"
        fill(work, wheel)
        script.write_text(inside(str(work), "examples/digits"), encoding="utf-8")
        environment = {"PATH": "/nonexistent", "HOME": str(work), "LC_ALL": "C.UTF-8"}
        subprocess.run([sys.executable, "-I", script], env=environment, check=True)
        return
    python = make_root(folder)
    fill(folder / "home", wheel)
    script.write_text(inside("/home", "examples/digits"), encoding="utf-8")
    mounts = "".join(f"mount --rbind /{name} {folder}/{name}\n" for name in ["proc", "sys", "dev"])
    enter = f"set -e\n{mounts}exec chroot {folder} {python} -I /home/inside.py"
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home", "LC_ALL": "C.UTF-8"}
    subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", enter], env=environment, check=True
    )
    print("test_wheel: all of it ran in a root with Python and nothing else")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel
    check_glibc(wheel)
    with tempfile.TemporaryDirectory(prefix="tilewright-root-") as folder:
        test(wheel.resolve(), Path(folder))


if __name__ == "__main__":
    main()
