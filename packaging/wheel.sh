#!/usr/bin/env bash
# Makes a wheel that runs without Rust, LLVM and a C compiler, for every Python from 3.9 on.
#
#   packaging/wheel.sh [FOLDER]        the wheel goes into FOLDER; `dist` unless said
#
# Needs a Rust toolchain, Python with venv, and a package index for maturin. On Linux, code is linked
# against the C library of manylinux2014 (glibc 2.17), by the linker of PyPI's `ziglang`; elsewhere by that
# of the system. The LLVM is that of the Rust toolchain, or on Windows that of LLVM's installer: `bundle.py` adds
# it with the licences.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder="${1:-dist}"

die() {
    echo "wheel: $*" >&2
    exit 2
}

rustc --version >/dev/null 2>&1 || die "'rustc --version' does not run; install a Rust toolchain (https://rustup.rs)"
python3 -c 'import venv' 2>/dev/null || die "install Python with venv"

venv=target/wheel-venv
[ -e "$venv/pyvenv.cfg" ] || python3 -m venv "$venv"
programs="$venv/bin"
[ -d "$programs" ] || programs="$venv/Scripts"
PATH="$PWD/$programs:$PATH"
python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'

host="$(rustc -vV | sed -n 's/^host: //p')"
options=(--release --strip --locked --target "$host" --out target/wheel)
case "$host" in
*-linux-gnu)
    python -m pip install --quiet --disable-pip-version-check 'ziglang>=0.13,<1'
    options+=(--zig --compatibility manylinux2014)
    ;;
esac

rm -rf target/wheel
maturin build "${options[@]}"
mkdir -p "$folder"
python packaging/bundle.py target/wheel/*.whl --target "$host" --output "$folder"
