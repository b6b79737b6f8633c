#!/usr/bin/env python3
"""Checks the manifests of all crates: each dependency is used, and each crate could be published.

A dependency counts as used where its name stands in the code that it is for: in `src` for one of the
crate itself, anywhere for one of its tests. Exits with 1 and a line for each fault.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["dependencies", "dev-dependencies", "build-dependencies"]
# What a registry asks for or shows.
WANTED = ["description", "license", "readme", "keywords", "categories", "version"]


def code(*folders):
    """The text of the Rust files below these folders."""
    files = [file for folder in folders for file in sorted(folder.rglob("*.rs"))]
    return "\n".join(file.read_text() for file in files)


def uses(text, crate):
    """Whether a text names a crate."""
    return re.search(rf"\b{crate.replace('-', '_')}\b", text) is not None


def examples(text):
    """How many blocks of code in the documentation of Rust files are run as tests."""
    fences = re.findall(r"^\s*//[/!] ?```(.*)$", text, re.MULTILINE)
    # Every second one ends a block.
    return sum(kind.strip() in ("", "rust", "no_run", "should_panic") for kind in fences[::2])


def tables(manifest, name):
    """The dependencies of a kind, those of single targets included."""
    yield from manifest.get(name, {})
    for target in manifest.get("target", {}).values():
        yield from target.get(name, {})


def faults(folder, workspace):
    """What is wrong with one crate."""
    manifest = tomllib.loads((folder / "Cargo.toml").read_text())
    package = manifest["package"]
    for field in WANTED:
        if field not in package:
            yield f"[package] has no `{field}`"
    source = code(folder / "src")
    everything = source + code(folder / "tests", folder / "benches", folder / "examples")
    library = manifest.get("lib", {})
    if library.get("test") is False and re.search(r"#\[test\]", source):
        yield "[lib] says `test = false`, so that the tests in src never run"
    if library.get("doctest") is False and examples(source):
        yield "[lib] says `doctest = false`, so that the examples in its documentation never run"
    # These only turn features on.
    features = manifest.get("features", {}).get("after-tests", [])
    for name in tables(manifest, "dependencies"):
        if not uses(source, name) and f"dep:{name}" not in features:
            yield f"the dependency `{name}` is not used in src"
    for name in tables(manifest, "dev-dependencies"):
        if not uses(everything, name):
            yield f"the development dependency `{name}` is not used"
    for name in tables(manifest, "build-dependencies"):
        if not uses((folder / "build.rs").read_text(), name):
            yield f"the build dependency `{name}` is not used"
    for kind in KINDS:
        for name in tables(manifest, kind):
            if name not in workspace:
                yield f"`{name}` is not among the dependencies of the workspace"


def main():
    root = tomllib.loads((ROOT / "Cargo.toml").read_text())
    workspace = root["workspace"]["dependencies"]
    found = [
        f"Cargo.toml: `{name}` has a path and no version, so that its users cannot be published"
        for name, value in workspace.items()
        if isinstance(value, dict) and "path" in value and "version" not in value
    ]
    used = set()
    for manifest in [*sorted(ROOT.glob("crates/*/Cargo.toml")), ROOT / "python/Cargo.toml"]:
        folder = manifest.parent
        found += [f"{folder.name}: {fault}" for fault in faults(folder, workspace)]
        content = tomllib.loads(manifest.read_text())
        used |= {name for kind in KINDS for name in tables(content, kind)}
    found += [
        f"Cargo.toml: no crate uses the dependency `{name}`"
        for name in workspace
        if name not in used and not (ROOT / "crates" / name).is_dir()
    ]
    for fault in found:
        print(fault, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
