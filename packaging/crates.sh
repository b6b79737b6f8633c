#!/usr/bin/env bash
# Packages all crates as they would be published, and builds each from its package alone, in the order in
# which they need one another. Nothing is uploaded. Needs a registry for the crates of others.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Cargo keeps what it unpacked of a package by the path of the build folder and the version: in a folder that was used
# before, a crate would be built against older ones.
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

# Packages are made of what is committed; with a version that is out already, `publish` itself would end it.
cargo publish --workspace --dry-run --locked --target-dir "$build" "$@"
