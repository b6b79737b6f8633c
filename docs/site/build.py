#!/usr/bin/env python3
"""Builds the static site: the documentation as pages, and a page that runs the command in the browser.

    docs/site/build.py [-o FOLDER] [--wasm FILE | --no-playground]

The command is compiled to WebAssembly by the Rust toolchain (`rustup target add wasm32-wasip1` gives what that
needs). A server has to serve the folder: `python3 -m http.server --directory target/site`.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "conformance"))

from python_environment import enter  # noqa: E402

HERE = ROOT / "docs/site"
TARGET = "wasm32-wasip1"

# The pages, as the table of contents has them: a heading, and files of the repository.
CONTENTS = {
    "Guide": sorted(
        (p.relative_to(ROOT) for p in (ROOT / "docs/guide").glob("[0-9]*.md")),
        key=lambda path: int(path.name.split("-")[0]),
    ),
    "Reference": [
        Path("docs/command-line.md"),
        Path("docs/primitives.md"),
        Path("docs/passes.md"),
        Path("docs/semantics.md"),
        Path("docs/performance.md"),
    ],
    "The project": [Path("ARCHITECTURE.md"), Path("CONTRIBUTING.md"), Path("CHANGELOG.md")],
}

# Files of the repository that the examples of the page are.
EXAMPLES = [
    Path("examples/layouts/matmul.py"),
    Path("examples/layouts/matmul_tiles.py"),
    Path("examples/layouts/sum.py"),
    Path("examples/digits/digits.onnx"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "target/site")
    parser.add_argument("--wasm", type=Path, help="the compiled command, instead of compiling it")
    parser.add_argument("--no-playground", action="store_true", help="without the page that runs the command")
    arguments = parser.parse_args()
    enter(HERE, [(HERE / "requirements.txt", [])])

    sources = ROOT / "target/site-sources"
    write_sources(sources, not arguments.no_playground)
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--quiet"]
    command += ["--fresh-env", "--conf-dir", HERE, sources, arguments.output]
    if subprocess.run(command).returncode != 0:
        sys.exit(1)
    if not arguments.no_playground:
        write_playground(arguments.output / "playground", arguments.wasm or compiled())
    print(f"{arguments.output}/index.html")


def write_sources(folder, playground):
    """The pages as Sphinx reads them: as they lie in the repository, with the README as the first."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = [path for group in CONTENTS.values() for path in group]
    readmes = [p.relative_to(ROOT) for p in ROOT.glob("*/**/README.md") if is_tracked(p)]
    for path in [*pages, *readmes, *pictures()]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, folder / path)
    others = [path for path in readmes if path not in pages and path.parts[0] in ("bench", "conformance", "python")]
    groups = CONTENTS | {"Measured and checked": sorted(others)}
    listed = {path for group in groups.values() for path in group}
    for path in readmes:
        if path not in listed:
            text = (folder / path).read_text()
            (folder / path).write_text(f"---\norphan: true\n---\n\n{text}")
    index = (ROOT / "README.md").read_text()
    if playground:
        index += '\n<p><a href="playground/index.html">Try it in the browser</a></p>\n'
    for caption, paths in groups.items():
        entries = "\n".join(str(path.with_suffix("")) for path in paths)
        index += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"
    (folder / "index.md").write_text(index)


def pictures():
    return [p.relative_to(ROOT) for p in ROOT.glob("docs/**/*.svg")]


def is_tracked(path):
    command = ["git", "ls-files", "--error-unmatch", path]
    return subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def compiled():
    """The command as WebAssembly, without what keeps measured times."""
    command = ["cargo", "build", "--locked", "--profile", "web", "--target", TARGET]
    command += ["--package", "tilewright-cli", "--no-default-features"]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        print(f"the command did not compile; `rustup target add {TARGET}` gives what it needs", file=sys.stderr)
        sys.exit(2)
    return ROOT / "target" / TARGET / "web/tilewright.wasm"


def write_playground(folder, wasm):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "playground", folder)
    for path in EXAMPLES:
        shutil.copyfile(ROOT / path, folder / "examples" / path.name)
    shutil.copyfile(wasm, folder / "tilewright.wasm")


if __name__ == "__main__":
    main()
