#!/usr/bin/env python3
"""Times cold compilation: from a model's file to a program, with nothing kept from before.

    bench/compile.py                          all models
    bench/compile.py --only resnet --rounds 5
    bench/compile.py --against OTHER          another program as well, in turns; the ratio of both
    bench/compile.py --json compile.json

A row is a model: the shortest time of some runs of the whole process (what is asked for is its first
result), its processor time, the stages in order, and the questions that were asked about sets of
integers: all, and how many of them the engine had to answer. Stages are those of the run with the
shortest time. Times of two programs count as a ratio of one call only: the machine may be busy.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

if __name__ == "__main__":
    peers.enter()

import compare
import harness

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def seconds(text):
    """A time as the program writes it."""
    value, unit = text.split()
    return float(value) * UNITS[unit]


def cold(program, case, inputs, threads):
    """One compilation and the first result: times, stages and questions."""
    sizes = [part for dim in case.dims.items() for part in ("--dim", "{}={}".format(*dim))]
    command = [program, "run", case.path, "--inputs", inputs, *sizes, "--no-cache", "--time"]
    command += ["--seconds", "0.001", "--threads", threads, "--output", Path(inputs).with_name("out.npz")]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "TILEWRIGHT_CACHE": "off", "TILEWRIGHT_TUNING": "off"}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          env=environment)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise peers.Failed(" ".join(done.stderr.split())[:200])
    stages = re.search(r"^time: stages (.*)$", done.stderr, re.MULTILINE)
    stages = [part.rsplit(" ", 2) for part in stages.group(1).split(", ")] if stages else []
    asked = re.search(r"^time: (\d+) questions, (\d+) ", done.stderr, re.MULTILINE)
    return {
        "wall": took,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "stages": {name: seconds(f"{value} {unit}") for name, value, unit in stages},
        "questions": [int(number) for number in asked.groups()] if asked else [],
    }


def measure(programs, case, args):
    """The best of some runs of each program, which take turns."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "in.npz"
        harness.save_npz(inputs, case.inputs)
        runs = [[cold(p, case, inputs, args.threads) for p in programs] for _ in range(args.rounds)]
    return [min(turns, key=lambda run: run["wall"]) for turns in zip(*runs)]


def line(name, best):
    """A row of the table."""
    own, *others = best
    cells = [f"{name:28}{own['wall']:7.2f} s{own['cpu']:8.2f} CPU s"]
    cells += [f"{own['cpu'] / other['cpu']:6.2f} of the other's CPU time" for other in others]
    if own["questions"]:
        cells.append("{} questions, {} by the engine".format(*own["questions"]))
    cells += [f"{stage} {took:.2f}" for stage, took in own["stages"].items()]
    return "  ".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--against", metavar="OTHER", help="another program, for the ratio")
    parser.add_argument("--threads", type=int, default=2, help="of the run (default: 2)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--json", metavar="FILE", help="write the results there as well")
    args = parser.parse_args()
    programs = [peers.binary(args.binary), *([args.against] if args.against else [])]
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in compare.cases(folder, args.only):
            try:
                rows[case.name] = measure(programs, case, args)
                print(line(case.name, rows[case.name]), flush=True)
            except peers.Failed as error:
                print(f"{case.name}: {error}", file=sys.stderr)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
