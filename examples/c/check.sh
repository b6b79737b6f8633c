#!/usr/bin/env bash
# Runs the commands of README.md, in a copy of the examples. Needs `tilewright`, `cmake` and `pkg-config`.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/examples"
cp -r ../c ../digits "$folder/examples"
# The blocks of code, in order; each begins anew.
awk '/^```/ { inside = !inside; if (inside) print "rm -rf build"; next } inside' README.md >"$folder/run"
said="$(cd "$folder" && bash -euo pipefail run)"
echo "$said"
[ "$(grep -cx 'a bar is a 1' <<<"$said")" = 2 ] || { echo "check: not what README.md says" >&2; exit 1; }
