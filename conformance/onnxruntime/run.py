#!/usr/bin/env python3
"""ONNX Runtime's own Python tests of its session, against `tilewright.onnxruntime`.

    conformance/onnxruntime/run.py SOURCES [--only SUBSTRING] [--verbose]

SOURCES is a folder with ONNX Runtime's sources: a checkout, or an unpacked release. Model files that these
lack are those of `models.py`. Each test runs twice: with ONNX Runtime, which says whether it can run here
at all (some need a library or a model that is not there), and with our names in the place of its. The exit
code is 0 if all that pass there pass here, except those of `exceptions.txt`, which are said with their
reasons.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import python_environment  # noqa: E402

FILES = (
    "onnxruntime_test_python",
    "onnxruntime_test_python_iobinding",
    "onnxruntime_test_python_mlops",
    "onnxruntime_test_python_nested_control_flow_op",
    "onnxruntime_test_python_backend",
)
#: What a test looks at before it decides that there is nothing to test.
LOOKS = {"get_available_providers"}


class Missing(type):
    """A class that we do not have: it can be named, and raised by nobody, and not be used."""

    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(f"tilewright.onnxruntime has no {cls.__name__}")

    def __getattr__(cls, name):
        return cls


class Recorded(types.ModuleType):
    """A module that says what was taken of it. What it lacks is a class that cannot be used."""

    #: The names that were taken of all of them.
    taken = set()

    def __init__(self, name, source, strict=False):
        super().__init__(name)
        self.__dict__.update(_source=source, _strict=strict, __path__=[])

    def __getattr__(self, name):
        self.taken.add(name)
        if hasattr(self._source, name):
            return getattr(self._source, name)
        if self._strict or name.startswith("__"):
            raise AttributeError(f"tilewright.onnxruntime has no {name}")

        return Missing(name, (Exception,), {})


def substitute():
    """Puts our names in the place of ONNX Runtime's; gives the module that records."""
    from tilewright import onnx_backend
    from tilewright import onnxruntime as ours

    main = Recorded("onnxruntime", ours, strict=True)
    sys.modules["onnxruntime"] = main
    inner = sys.modules["onnxruntime.capi"] = types.ModuleType("onnxruntime.capi")
    for name in ("_pybind_state", "onnxruntime_pybind11_state", "onnxruntime_inference_collection"):
        sys.modules[f"onnxruntime.capi.{name}"] = Recorded(name, ours)
        setattr(inner, name, sys.modules[f"onnxruntime.capi.{name}"])
    sys.modules["onnxruntime.backend"] = Recorded("onnxruntime.backend", onnx_backend, strict=True)
    return main


def old_names():
    """`onnx.mapping`, which older tests import and `onnx` does not have any more."""
    import onnx

    try:
        importlib.import_module("onnx.mapping")
    except ImportError:
        mapping = types.ModuleType("onnx.mapping")
        kinds = onnx.TensorProto.DataType.values()
        plain = [k for k in kinds if k not in (onnx.TensorProto.UNDEFINED,)]
        mapping.TENSOR_TYPE_MAP = {
            k: types.SimpleNamespace(np_dtype=onnx.helper.tensor_dtype_to_np_dtype(k)) for k in plain
        }
        sys.modules["onnx.mapping"] = mapping


class Outcomes(unittest.TestResult):
    """What became of each test."""

    def __init__(self, main):
        super().__init__()
        self.main, self.said = main, {}

    def startTest(self, test):  # noqa: N802
        super().startTest(test)
        if self.main:
            self.main.taken.clear()

    def _say(self, test, outcome, reason=""):
        name = getattr(test, "test_case", test).id()
        if self.said.get(name, ["passed"])[0] == "passed":
            self.said[name] = [outcome, reason]

    def addSuccess(self, test):  # noqa: N802
        is_empty = self.main is not None and self.main.taken <= LOOKS
        self._say(test, "empty" if is_empty else "passed")

    def addFailure(self, test, error):  # noqa: N802
        self._say(test, "failed", f"{error[0].__name__}: {error[1]}")

    def addSkip(self, test, reason):  # noqa: N802
        self._say(test, "skipped", reason)

    def addSubTest(self, test, subtest, error):  # noqa: N802
        if error is not None:
            self._say(test, "failed", f"{subtest}: {error[0].__name__}: {error[1]}")

    addError = addFailure  # noqa: N815


def tests(only):
    """The tests of all files, as far as these can be imported."""
    for name in FILES:
        loaded = unittest.defaultTestLoader.loadTestsFromName(name)
        for group in loaded:
            for test in group if isinstance(group, unittest.TestSuite) else [group]:
                if only in test.id():
                    yield test


def work(given):
    """Runs all tests in this process, and prints what became of them."""
    old_names()
    main = substitute() if given.side == "tilewright" else None
    sys.path.insert(0, str(Path(given.sources) / "onnxruntime/test/python"))
    import helper

    found = helper.get_name

    def get_name(name):
        own = Path("testdata") / name
        return str(own) if own.exists() else found(name)

    helper.get_name = get_name
    outcomes = Outcomes(main)
    for test in tests(given.only):
        test.run(outcomes)
    Path(given.result).write_text(json.dumps(outcomes.said))


def outcomes_of(side, given):
    """What became of each test with one of the two, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        import models

        models.write(Path(folder) / "testdata")
        result = Path(folder) / "result.json"
        command = [sys.executable, __file__, given.sources, "--only", given.only]
        command += ["--side", side, "--result", result]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if not result.exists():
            sys.exit(f"the tests did not end with {side}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return json.loads(result.read_text())


def exceptions():
    """The reasons of tests that are not passed, by the end of their names."""
    lines = (HERE / "exceptions.txt").read_text().splitlines()
    pairs = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    return dict(pairs)


def prepare():
    """Goes on in an environment that has the package of this checkout, unless this one has it."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import tilewright  # noqa: F401
    except ImportError:
        python_environment.enter(HERE, [(HERE / "requirements.txt", [])])
        command = [sys.executable, "-m", "pip", "install", "--quiet", python_environment.ROOT]
        if subprocess.run(command).returncode != 0:
            sys.exit("the package does not install")
        os.execv(sys.executable, [sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", help="a folder with ONNX Runtime's sources")
    parser.add_argument("--only", default="", metavar="SUBSTRING")
    parser.add_argument("--verbose", action="store_true", help="says all tests")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.sources = str(Path(given.sources).resolve())
    if given.side:
        return work(given)
    prepare()
    theirs, ours = (outcomes_of(side, given) for side in ("onnxruntime", "tilewright"))
    reasons = exceptions()
    counts = dict.fromkeys(("passed", "excepted", "failed", "empty", "not here"), 0)
    for name, (expected, why) in theirs.items():
        outcome, reason = ours.get(name, ["failed", "it did not run"])
        short = name.rpartition(".")[2]
        if expected != "passed":
            outcome, reason = "not here", f"with ONNX Runtime: {expected}: {why}"
        elif outcome in ("failed", "skipped"):
            outcome = "excepted" if short in reasons else "failed"
            reason = reasons.get(short, reason)
        elif short in reasons:
            outcome, reason = "failed", f"it passes, and is an exception: {reasons[short]}"
        counts[outcome] += 1
        if given.verbose or outcome in ("failed", "excepted"):
            print(f"{outcome:>9}  {name}  {' '.join(reason.split())[:300]}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
