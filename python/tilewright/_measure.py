"""The process that measures: reads requests, one a line, and answers each with a line."""

from __future__ import annotations

import pickle
import sys

from . import _native


def main() -> None:
    """Answers until there are no more requests."""
    module = None
    if len(sys.argv) > 1:
        with open(sys.argv[1], "rb") as file:
            module = pickle.load(file)._raw
    for line in sys.stdin:
        print(_native.measure_line(line, module), flush=True)


if __name__ == "__main__":
    main()
