#!/usr/bin/env python3
"""Checks that the modules of each crate use one another in one direction.

A module here is a file or folder directly below `src`. The tree of the IR is one recursive type over
several files, so those are left out. Tests inside of files and comments do not count.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Files over which one recursive type goes, by crate.
RECURSIVE = {
    "tilewright-ir": set(
        "buffer demand dim effects expr func intrinsic scalar stmt subst visit".split()
    ),
    # Sets and the piecewise forms over them are one recursion.
    "presburger": set("aff relation".split()),
    # Large constants are computed by compiled functions.
    "tilewright-driver": {"compile", "constants"},
}


def uses(source: Path) -> dict[str, set[str]]:
    """For each module below a `src` folder, the others that it names as `crate::...`."""
    names = {path.stem for path in source.iterdir() if path.is_dir() or path.suffix == ".rs"}
    found: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.rs")):
        module = path.relative_to(source).parts[0].removesuffix(".rs")
        if module in ("lib", "main"):
            continue
        text = path.read_text().split("#[cfg(test)]")[0]
        text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
        used = set(re.findall(r"\bcrate::(\w+)", text))
        for group in re.findall(r"\bcrate::\{([^;]*)\};", text):
            used |= set(re.findall(r"(?:^|[,{])\s*(\w+)", group))
        found.setdefault(module, set()).update((used & names) - {module})
    return found


def circle(graph: dict[str, set[str]]) -> list[str] | None:
    """Modules that use one another in a circle, the first of them again at the end."""
    done: set[str] = set()

    def visit(module: str, way: list[str]) -> list[str] | None:
        if module in way:
            return [*way[way.index(module) :], module]
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
    for source in sorted(ROOT.glob("crates/*/src")):
        crate = source.parent.name
        left_out = RECURSIVE.get(crate, set())
        graph = {m: used - left_out for m, used in uses(source).items() if m not in left_out}
        if found := circle(graph):
            print(f"{crate}: modules use one another: {' -> '.join(found)}", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
