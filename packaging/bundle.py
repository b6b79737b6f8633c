#!/usr/bin/env python3
"""Adds to a wheel what it needs to run alone: libLLVM, and everybody's licences.

The libLLVM is that of the Rust toolchain; on Windows, where LLVM is inside of rustc, that of LLVM's own installer.

    packaging/bundle.py WHEEL --target TRIPLE --output FOLDER
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent

#: What a wheel may weigh.
MOST_BYTES = 80_000_000

#: The licences of LLVM, by the names of their files in a Rust toolchain.
LLVM_LICENCES = ["Apache-2.0.txt", "LLVM-exception.txt", "NCSA.txt"]

#: Those of Rust's own libraries.
RUST_LICENCES = ["Apache-2.0.txt", "MIT.txt"]

#: How the files are called that say what others may do with a crate.
LICENCE_FILES = ("license", "licence", "copying", "copyright", "notice", "unlicense")

#: Where LLVM's installer for Windows puts the library with the interface in C.
LLVM_OF_WINDOWS = "LLVM/bin/LLVM-C.dll"

#: The first bytes of shared libraries: ELF, Mach-O.
MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def die(message: str) -> NoReturn:
    print(f"bundle: {message}", file=sys.stderr)
    sys.exit(2)


def said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def libllvm(sysroot: Path, target: str) -> tuple[Path, str]:
    """A libLLVM, and whose build it is; linker scripts of toolchains have names like it."""
    if "windows" in target:
        file = Path(os.environ.get("ProgramFiles", "C:/Program Files")) / LLVM_OF_WINDOWS
        if not file.is_file():
            die(f"{file} is missing; install LLVM (https://llvm.org)")
        return file, "its own installer has it"
    folder = sysroot / "lib"
    for file in sorted(folder.glob("libLLVM*")):
        with file.open("rb") as opened:
            if opened.read(4) in MAGIC:
                rust = said("rustc", "--version").strip()
                return file, f"the Rust project builds it for {rust}"
    die(f"there is no shared libLLVM in {folder}; some platforms' toolchains have LLVM inside of rustc")


def texts(folder: Path, names: list[str]) -> str:
    parts = []
    for name in names:
        file = folder / name
        if not file.is_file():
            die(f"{file} is missing; the toolchain's documentation of licences is part of its `rustc`")
        parts.append(file.read_text(encoding="utf-8"))
    return "\n\n".join(parts)


def crates(target: str) -> list[dict[str, str]]:
    """The crates of others that the extension is linked with."""
    metadata = json.loads(
        said("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target)
    )
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    left = [i for i, package in packages.items() if package["name"] == "tilewright-python"]
    seen: set[str] = set()
    while left:
        package = left.pop()
        if package in seen:
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                left.append(dependency["pkg"])
    others = [packages[i] for i in seen if packages[i]["source"] is not None]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def crate_licences(target: str) -> str:
    """What the crates are licensed under, with the texts that they bring."""
    parts = ["The crates that this package is made of besides its own, and their licences.\n"]
    for package in crates(target):
        parts.append(f"{'=' * 80}\n{package['name']} {package['version']}: {package['license']}\n")
        folder = Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.name.lower().startswith(LICENCE_FILES):
                parts.append(f"--- {file.name}\n\n{file.read_text(encoding='utf-8', errors='replace')}\n")
    return "\n".join(parts)


def added(dist_info: str, target: str) -> list[tuple[str, bytes]]:
    """What goes into the wheel, by its path there."""
    sysroot = Path(said("rustc", "--print", "sysroot").strip())
    licences = sysroot / "share/doc/rust/licenses"
    library, origin = libllvm(sysroot, target)
    rust = said("rustc", "--version").strip()
    llvm = (
        f"{library.name} is LLVM (https://llvm.org) as {origin}, unchanged.\n"
        "LLVM is under the Apache License 2.0 with LLVM exceptions; parts of it are under the licence of\n"
        "the University of Illinois (NCSA). The texts follow.\n\n"
    )
    std = f"The standard library of {rust} is under the MIT licence or the Apache License 2.0.\n\n"
    return [
        (f"tilewright/lib/{library.name}", library.read_bytes()),
        (f"{dist_info}/licenses/LLVM.txt", (llvm + texts(licences, LLVM_LICENCES)).encode()),
        (f"{dist_info}/licenses/RUST.txt", (std + texts(licences, RUST_LICENCES)).encode()),
        (f"{dist_info}/licenses/CRATES.txt", crate_licences(target).encode()),
    ]


def record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def bundle(wheel: Path, target: str, output: Path) -> Path:
    result = output / wheel.name
    with (
        zipfile.ZipFile(wheel) as old,
        zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        [record] = [name for name in old.namelist() if name.endswith(".dist-info/RECORD")]
        dist_info = record.partition("/")[0]
        lines = old.read(record).decode().splitlines()
        for info in old.infolist():
            if info.filename != record:
                new.writestr(info, old.read(info), zipfile.ZIP_DEFLATED, 9)
        more = added(dist_info, target)
        for name, content in more:
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o100644 << 16
            new.writestr(info, content, zipfile.ZIP_DEFLATED, 9)
        own = lines.pop()
        if not own.startswith(record):
            die(f"{record} does not end with its own line")
        lines += [*(record_line(name, content) for name, content in more), own]
        info = zipfile.ZipInfo(record)
        info.external_attr = 0o100644 << 16
        new.writestr(info, "\n".join(lines) + "\n", zipfile.ZIP_DEFLATED)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--target", required=True, help="the triple that it was built for")
    parser.add_argument("--output", type=Path, required=True, help="the folder for the result")
    given = parser.parse_args()
    result = bundle(given.wheel, given.target, given.output)
    size = result.stat().st_size
    print(f"bundle: {result}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        die(f"that is more than {MOST_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
