#!/usr/bin/env python3
"""Checks that the files of each crate use one another in one direction.

A file uses another if it names something of it, as `crate::...`, `super::...` or `self::...`. The roots
of crates do not count, and neither do tests inside of files, comments, and files over which one
recursive type or one recursive grammar goes.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Module = tuple[str, ...]

# Files over which one recursion goes, by crate.
RECURSIVE = {
    "tilewright-ir": "buffer demand dim effects expr func intrinsic scalar stmt subst visit",
    # Sets and the piecewise forms over them.
    "presburger": "aff coalesce hull relation",
    # Large constants are computed by compiled functions.
    "tilewright-driver": "constants",
    # Blocks have buffers and scopes, which have blocks.
    "tilewright-tvmscript": "tensor tensor/blocks tensor/buffers tensor/params tensor/scopes",
}


def split(tree: str) -> list[str]:
    """The parts of a list in braces, at commas that are in no braces of their own."""
    parts, depth = [""], 0
    for c in tree:
        depth += (c == "{") - (c == "}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]


def expand(tree: str) -> list[list[str]]:
    """The paths of a tree of `use`."""
    if group := re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree.strip(), re.DOTALL):
        before = group[1].split("::")[:-1]
        return [before + path for part in split(group[2]) for path in expand(part)]
    return [re.sub(r"\s+as\s+\w+", "", tree).strip().split("::")]


def paths(text: str) -> list[list[str]]:
    """The paths inside of the crate that a file names."""
    text = re.sub(r"//.*$", "", text.split("#[cfg(test)]")[0], flags=re.MULTILINE)
    trees = re.findall(r"\buse\s+((?:crate|super|self)\b[^;]*);", text)
    named = re.findall(r"\b(?:crate|super|self)(?:::\w+)+", text)
    return [path for tree in trees for path in expand(tree)] + [name.split("::") for name in named]


def module_of(file: Path) -> Module:
    """The module that a file below `src` is."""
    roots = ("mod.rs", "lib.rs", "main.rs")
    return (*file.parts[:-1], *([] if file.name in roots else [file.stem]))


def resolve(path: list[str], here: Module, modules: dict[Module, Path]) -> Module:
    """The file that a path leads to: the longest of its beginnings that is one."""
    base, rest = {"crate": (), "self": here}.get(path[0], here), path[path[0] != "super" :]
    while rest and rest[0] == "super":
        base, rest = base[:-1], rest[1:]
    ends = [(*base, *rest[:k]) for k in range(len(rest), -1, -1)]
    return next((end for end in ends if end in modules), ())


def uses(source: Path) -> dict[Module, set[Module]]:
    """For each file below a `src` folder, the others that it uses."""
    modules = {module_of(path.relative_to(source)): path for path in source.rglob("*.rs")}
    found = {}
    for here, file in modules.items():
        to = {resolve(path, here, modules) for path in paths(file.read_text())}
        found[here] = to - {here, ()}
    return found


def circle(graph: dict[Module, set[Module]]) -> list[str] | None:
    """Files that use one another in a circle, the first of them again at the end."""
    done: set[Module] = set()

    def visit(module: Module, way: list[Module]) -> list[str] | None:
        if module in way:
            return ["/".join(m) for m in [*way[way.index(module) :], module]]
        if module in done:
            return None
        for other in sorted(graph.get(module, ())):
            if found := visit(other, [*way, module]):
                return found
        done.add(module)
        return None

    return next((found for module in sorted(graph) if (found := visit(module, []))), None)


def main() -> int:
    wrong = 0
    for source in [*sorted(ROOT.glob("crates/*/src")), ROOT / "python/src"]:
        crate = source.parent.name
        left_out = {tuple(name.split("/")) for name in RECURSIVE.get(crate, "").split()}
        graph = {m: used - left_out for m, used in uses(source).items() if m not in left_out}
        if found := circle(graph):
            print(f"{crate}: files use one another: {' -> '.join(found)}", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
