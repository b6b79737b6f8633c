#!/usr/bin/env python3
"""Checks random programs, schedules, chains of passes and graphs against an oracle of its own.

    run.py --count 200 --seed 1 --kind all --tilewright target/release/tilewright

The exit code is 1 if anything was wrong, and 2 if the oracle itself failed. See README.md.
"""

import argparse
import collections
import os
import sys
import tempfile
import time
import traceback
import unittest
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import python_environment  # noqa: E402

if __name__ == "__main__":
    python_environment.enter(HERE, [(HERE / "requirements.txt", [])])

import cases  # noqa: E402

KINDS = ["programs", "schedules", "passes", "graphs"]


# A step that is asked for at least so often, and accepted less than once in so many, tests nothing.
ASKED, ONCE_IN = 60, 40


def rarely(steps):
    """Primitives and passes that are almost never accepted."""
    found = []
    for name in sorted({name for name, _ in steps}):
        accepted = steps[(name, "accepted")]
        asked = accepted + steps[(name, "refused")]
        if asked >= ASKED and accepted * ONCE_IN < asked:
            found.append(name)
    return found


def work(kind, seed, program, timeout, target):
    """One case; returns its counts and what it found."""
    context = cases.Context(program, timeout, kind, seed, target)
    try:
        with tempfile.TemporaryDirectory(prefix="tilewright-random-") as folder:
            context.folder = Path(folder)
            cases.KINDS[kind](context)
    except Exception:
        context.count("own error")
        context.errors.append(f"{kind} {seed}\n{traceback.format_exc()}")
    return context.result()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="cases of each kind")
    parser.add_argument("--seed", type=int, default=1, help="of the first case; others follow")
    parser.add_argument("--kind", default="all", choices=[*KINDS, "all"])
    parser.add_argument("--tilewright", help="the program (default: a release build)")
    parser.add_argument("--target", help="where `programs` run: `opencl` or `cuda` (default: the CPU)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for one run")
    parser.add_argument("--output", default=str(HERE / ".work"), help="folder for reproductions")
    parser.add_argument("--keep", type=int, default=3, help="reproductions of each sort of error")
    parser.add_argument(
        "--check-itself", action="store_true", help="run the tests of the evaluator first"
    )
    arguments = parser.parse_args()
    if arguments.check_itself and not tests_pass():
        return 2
    program = python_environment.binary(arguments.tilewright)
    kinds = KINDS if arguments.kind == "all" else [arguments.kind]
    failed, errors = False, 0
    for kind in kinds:
        start = time.monotonic()
        counts, steps, found, own = check(kind, program, arguments)
        report(kind, counts, steps, found, own, time.monotonic() - start)
        failed |= bool(found)
        few = rarely(steps)
        if few:
            print(f"  ALMOST NEVER ACCEPTED: {', '.join(few)}")
        errors += len(own) + len(few)
    return 1 if failed else 2 if errors else 0


def tests_pass():
    tests = unittest.defaultTestLoader.discover(str(HERE))
    return unittest.TextTestRunner(verbosity=0).run(tests).wasSuccessful()


def check(kind, program, arguments):
    counts, steps = collections.Counter(), collections.Counter()
    found, own = collections.defaultdict(list), []
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    with ProcessPoolExecutor(max_workers=arguments.jobs) as pool:
        given = (program, arguments.timeout, arguments.target)
        futures = [pool.submit(work, kind, s, *given) for s in seeds]
        for future in as_completed(futures):
            result = future.result()
            counts.update(result["counts"])
            steps.update(result["steps"])
            own += result["errors"]
            for failure in result["failures"]:
                found[failure["sort"]].append(failure)
    for sort, failures in sorted(found.items()):
        failures.sort(key=lambda f: (len(f["text"]), f["seed"]))
        for failure in failures[: arguments.keep]:
            cases.write(failure, Path(arguments.output), program, arguments.timeout)
    return counts, steps, found, own


def report(kind, counts, steps, found, own, seconds):
    order = ["generated", "illegal", "changed", "unchanged", "equal", "refused", "unknown"]
    order += ["wrong", "internal", "crashed", "timed out", "own error"]
    text = ", ".join(f"{name} {counts[name]}" for name in order if counts[name])
    print(f"{kind}: {text} ({seconds:.0f} s)")
    names = sorted({name for name, _ in steps})
    if names:
        print("  accepted of asked for:", end="")
        for i, name in enumerate(names):
            accepted = steps[(name, "accepted")]
            asked = accepted + steps[(name, "refused")]
            print(("\n    " if i % 4 == 0 else "; ") + f"{name} {accepted}/{asked}", end="")
        print()
    for sort, failures in sorted(found.items(), key=lambda item: -len(item[1])):
        seeds = " ".join(str(f["seed"]) for f in failures[:5])
        print(f"  WRONG {sort}: {len(failures)} times, seeds {seeds}")
        print(f"    {failures[0]['message'][:300]}")
    for error in own[:3]:
        print("  OWN ERROR " + error.replace("\n", "\n    "))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
