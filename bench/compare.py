#!/usr/bin/env python3
"""Times Tilewright against ONNX Runtime, one thread each, on the models of `conformance/onnx`.

The two take turns: in each round Tilewright runs (in a process of its own, timing
itself with `--time`), then ONNX Runtime for about as long. What slows the machine down
for a while so slows both, and the ratio of a round stands. Both are held on the same
processor core where the system allows that.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

CONFORMANCE = Path(__file__).resolve().parent.parent / "conformance" / "onnx"
sys.path.insert(0, str(CONFORMANCE))

import environment

if __name__ == "__main__":
    environment.enter()

import onnxruntime

import harness
import models


def say(text):
    print(text, file=sys.stderr, flush=True)


def hold_core(core):
    """Keeps this process and its children on one core; tells whether that worked."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[-1] if core is None else core})
    return True


def other_session(path):
    """ONNX Runtime on one thread, with its usual optimisations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def median_seconds(call, at_least):
    """The median of repeated calls, after two to warm up, for `at_least` seconds and 5 calls."""
    call(), call()
    samples, start = [], time.perf_counter()
    while len(samples) < 5 or time.perf_counter() - start < at_least:
        before = time.perf_counter()
        call()
        samples.append(time.perf_counter() - before)
    return statistics.median(samples)


def compare(program, case, rounds, at_least, timeout):
    """One row: medians over the rounds, and the ratio of every round."""
    folder = environment.WORK / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    inputs = folder / "in.npz"
    harness.save_npz(inputs, case.inputs)
    session = other_session(case.path)
    row = {"model": case.name, "inputs": case.about(), "reason": ""}
    own, other = [], []
    for _ in range(rounds):
        outcome = harness.run(
            program, case.path, inputs, dims=case.dims, threads=1, timed=True, timeout=timeout
        )
        if outcome.status != "ok":
            return {**row, "reason": f"{outcome.status}: {outcome.reason}"}
        if not outcome.run_seconds:
            return {**row, "reason": "`run --time` prints no median"}
        own.append(outcome.run_seconds)
        other.append(median_seconds(lambda: session.run(None, case.inputs), at_least))
    ratios = [a / b for a, b in zip(own, other)]
    return {
        **row,
        "tilewright_seconds": statistics.median(own),
        "onnxruntime_seconds": statistics.median(other),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def table(rows):
    header = ["model", "inputs", "Tilewright ms", "ORT ms", "ratio", "lowest", "highest", "reason"]
    lines = []
    for row in rows:
        numbers = ["-"] * 5
        if "ratio" in row:
            milliseconds = [1e3 * row[f"{who}_seconds"] for who in ("tilewright", "onnxruntime")]
            ratios = [row["ratio"], min(row["ratios"]), max(row["ratios"])]
            numbers = [f"{x:.3f}" for x in milliseconds] + [f"{x:.2f}" for x in ratios]
        lines.append([row["model"], row["inputs"], *numbers, row["reason"]])
    return harness.table(header, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--rounds", type=int, default=5, help="turns for each (default: 5)")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="of ONNX Runtime per round (default: 1)"
    )
    parser.add_argument("--core", type=int, help="the core to use (default: the last one)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one run")
    parser.add_argument("--json", metavar="FILE", help="write the results there as well")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    program = environment.binary(args.binary)
    if not hold_core(args.core):
        say("this system cannot hold a process on one core")
    rows = []
    for case in models.cases(args.only):
        if case.note:  # the same model stored in another way
            continue
        say(f"{case.name} {case.about()}")
        rows.append(compare(program, case, args.rounds, args.seconds, args.timeout))
    print(table(rows))
    timed = [row["ratio"] for row in rows if "ratio" in row]
    if timed:
        mean = statistics.geometric_mean(timed)
        print(f"\nratio: Tilewright's time over ONNX Runtime's; geometric mean {mean:.2f}")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=2) + "\n")
    sys.exit(0 if rows and len(timed) == len(rows) else 1)


if __name__ == "__main__":
    main()
