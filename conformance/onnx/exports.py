#!/usr/bin/env python3
"""Checks exports of PyTorch with open sizes against ONNX Runtime, at sizes that were not traced.

    exports.py [--only SUBSTRING] [--binary PROGRAM]

The networks of `architectures.py` and `heads.py` are exported by both of PyTorch's exporters. Each model is compiled with
`--open` and runs at the sizes at which it was traced and at others. The first run makes a virtual environment,
see README.md.
"""

import argparse
import contextlib
import io
import logging
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import environment

if __name__ == "__main__":
    environment.enter_exports()

import numpy as np
import onnxruntime
import torch

import architectures
import harness
import heads  # noqa: F401  # registers its networks

EXPORTERS = ("script", "dynamo")
OUT = sys.stdout  # an export that goes on at the same time takes `sys.stdout`
RTOL = 1e-3  # of the largest magnitude in an output
ELEMENT_RTOL, ELEMENT_ATOL = 1e-3, 1e-5


def export(network, exporter, path):
    """Writes the model; what the exporter says when it cannot, else nothing."""
    torch.manual_seed(1)
    example = network.inputs(*network.first)
    names = list(network.axes)
    options = dict(input_names=names, dynamo=exporter == "dynamo")
    if exporter == "dynamo":
        # Names of its own for each axis, as it gives them where nobody says which are equal.
        auto = {k: {a: torch.export.Dim.AUTO for a in axes} for k, axes in network.axes.items()}
        options["dynamic_shapes"] = tuple(auto.values())
    else:
        options.update(dynamic_axes=network.axes, opset_version=18)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), torch.no_grad():
            torch.onnx.export(network.module, example, str(path), **options)
    except Exception as error:  # whatever the exporter cannot do is no matter here
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ""


def check(program, network, exporter, timeout):
    """What is to be said of one export: a list of (status, text)."""
    folder = environment.WORK / "exports" / f"{network.name}-{exporter}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    said = "" if exporter not in network.skip else "known not to be exported"
    said = said or export(network, exporter, path)
    if said:
        return [("skipped", said)]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = []
    for number, sizes in enumerate([network.first, *network.others]):
        torch.manual_seed(number + 2)
        given = [t.numpy() for t in network.inputs(*sizes)]
        inputs = dict(zip([i.name for i in session.get_inputs()], given))
        try:
            expected = dict(zip(names, session.run(names, inputs)))
        except Exception as error:  # the export holds the sizes that were traced
            found.append(("skipped", f"{sizes}: ONNX Runtime: {str(error).splitlines()[0][-160:]}"))
            continue
        harness.save_npz(folder / f"in{number}.npz", inputs)
        harness.save_npz(folder / f"expected{number}.npz", expected)
        outcome = harness.run(
            program, path, folder / f"in{number}.npz", timeout=timeout, options=["--open"]
        )
        if outcome.status != "ok":
            found.append((outcome.status, f"{sizes}: {outcome.reason}"))
            continue
        problems = [harness.missing_or_extra(outcome.outputs, expected)]
        for name in set(expected) & set(outcome.outputs):
            far = harness.difference(
                outcome.outputs[name], expected[name], ELEMENT_RTOL, ELEMENT_ATOL
            )
            if far.problem and (far.total == 0 or not far.relative <= RTOL):
                problems.append(f"{name}: {far.relative:.1e}; {far.problem}")
        wrong = "; ".join(problem for problem in problems if problem)
        found.append(("failed", f"{sizes}: {wrong}") if wrong else ("pass", f"{sizes}"))
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--jobs", type=int, default=1, help="exports at a time (default: 1)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one run")
    args = parser.parse_args()
    program = environment.binary(args.binary)
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    np.seterr(all="ignore")
    chosen = [n for n in architectures.ALL if args.only.lower() in n.name.lower()]
    work = [(n, exporter) for n in chosen for exporter in EXPORTERS]
    totals = {}
    with ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda pair: check(program, *pair, args.timeout), work)
        for (network, exporter), found in zip(work, results):
            for status, text in found:
                totals[status] = totals.get(status, 0) + 1
                print(f"{status:8} {network.name} ({exporter}) {text}", file=OUT, flush=True)
    print(", ".join(f"{count} {status}" for status, count in sorted(totals.items())), file=OUT)
    sys.exit(0 if totals.get("pass") and set(totals) <= {"pass", "skipped"} else 1)


if __name__ == "__main__":
    main()
