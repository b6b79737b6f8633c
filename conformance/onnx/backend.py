#!/usr/bin/env python3
"""ONNX's own backend test suite, through the Python package.

The suite is `onnx.backend.test`, run against `tilewright.onnx_backend` as ONNX runs it: the node cases
and the small models that are in the package `onnx`. It needs the package of this checkout; the first run
makes an environment in `.backend/.venv` and installs it there.

    conformance/onnx/backend.py [--only SUBSTRING] [--jobs N] [--json FILE] [--compare FILE]

`--compare FILE` takes the JSON of `run.py nodes --json FILE`: the exit code is then 0 if every case that
passes there passes here. Without it, it is 0 if nothing failed but what was refused with an error of the
compiler, or is listed in `exceptions.txt`.
"""

import argparse
import collections
import fnmatch
import json
import multiprocessing
import os
import subprocess
import sys
import unittest
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import python_environment  # noqa: E402

FOLDER = HERE / ".backend"
GROUPS = ["OnnxBackendNodeModelTest", "OnnxBackendSimpleModelTest", "OnnxBackendPyTorchOperatorModelTest"]
SUITE = None


def prepare():
    """Goes on in an environment that has the package of this checkout."""
    FOLDER.mkdir(exist_ok=True)
    python_environment.enter(FOLDER, [(HERE / "requirements-backend.txt", [])])
    try:
        import tilewright  # noqa: F401
    except ImportError:
        command = [sys.executable, "-m", "pip", "install", "--quiet", python_environment.ROOT]
        if subprocess.run(command).returncode != 0:
            sys.exit("the package does not install")
        os.execv(sys.executable, [sys.executable, *sys.argv])


def suite():
    """The cases by group; made once in a process."""
    global SUITE
    if SUITE is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import onnx.backend.test
            import tilewright.onnx_backend

            SUITE = onnx.backend.test.BackendTest(tilewright.onnx_backend.TilewrightBackend, __name__).test_cases
    return SUITE


def names():
    """Every case of the CPU, with its group."""
    for group in GROUPS:
        for name in dir(suite()[group]):
            if name.startswith("test_") and name.endswith("_cpu"):
                yield group, name


def run(case):
    """What becomes of a case: its name, status and reason."""
    group, name = case
    import tilewright

    test = suite()[group](name)
    result = unittest.TestResult()
    warnings.simplefilter("ignore")
    errors = {}
    # The exception itself, and not only its text.
    result.addError = lambda test, error: errors.update(error=error[1])
    result.addFailure = lambda test, error: errors.update(failure=error[1])
    result.addSkip = lambda test, reason: errors.update(skip=reason)
    test.run(result)
    short = name.removesuffix("_cpu")
    if "skip" in errors:
        return short, "skipped", str(errors["skip"])
    error = errors.get("error") or errors.get("failure")
    if error is None:
        return short, "pass", ""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error, TypeError) and said.startswith("Unable to compare"):
        # The suite takes the length of scalars in a sequence, which have none.
        return short, "not compared", said
    refused = isinstance(error, tilewright.Error) and error.kind not in {"internal", "execution"}
    return short, "refused" if refused else "failed", said


def pool(jobs):
    """Processes that share nothing with this one, whose threads a fork would not have."""
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


def run_all(cases, jobs):
    """The results of all cases; a process that ends counts as a failure of the case that it ran."""
    results = {}
    waiting = list(cases)
    with pool(jobs) as workers:
        running = {workers.submit(run, case): case for case in waiting}
        waiting = []
        for done, future in enumerate(as_completed(running)):
            try:
                name, status, reason = future.result()
                results[name] = (status, reason)
            except BrokenProcessPool:
                waiting.append(running[future])
            if done % 100 == 0:
                print(f"{done} of {len(running)}", file=sys.stderr, flush=True)
    for case in waiting:
        with pool(1) as alone:
            try:
                name, status, reason = alone.submit(run, case).result()
                results[name] = (status, reason)
            except BrokenProcessPool:
                results[case[1].removesuffix("_cpu")] = ("failed", "the process ended")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    parser.add_argument("--compare", type=Path)
    arguments = parser.parse_args()
    listed = ("exceptions.txt", "tolerances.txt")
    lines = [line for name in listed for line in (HERE / name).read_text().splitlines()]
    patterns = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    cases = [case for case in names() if arguments.only in case[1]]
    results = run_all(cases, arguments.jobs)
    counts = collections.Counter(status for status, _ in results.values())
    failed = {
        name: reason
        for name, (status, reason) in sorted(results.items())
        if status == "failed" and not any(fnmatch.fnmatch(name, p) for p in patterns)
    }
    for name, reason in failed.items():
        print(f"failed: {name}: {reason}")
    print(", ".join(f"{count} {status}" for status, count in counts.most_common()))
    if arguments.json:
        table = {name: {"status": s, "reason": r} for name, (s, r) in sorted(results.items())}
        arguments.json.write_text(json.dumps(table, indent=1))
    if arguments.compare:
        given = json.loads(arguments.compare.read_text())
        passed = {r["name"] for r in given["cases"] if r["status"] == "pass"}
        worse = sorted(n for n in passed & results.keys() if results[n][0] != "pass")
        print(f"{len(passed)} pass on the command line, {len(passed) - len(worse)} of them here")
        for name in worse:
            print(f"  {name}: {results[name][0]}: {results[name][1]}")
        sys.exit(1 if worse else 0)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    prepare()
    main()
