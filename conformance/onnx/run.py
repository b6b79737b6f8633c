#!/usr/bin/env python3
"""Checks Tilewright against ONNX Runtime and ONNX's own test cases.

    run.py models     real models against ONNX Runtime
    run.py nodes      ONNX's node cases for the operators that Tilewright claims
    run.py graphs     random models against ONNX Runtime
    run.py sizes      random models with arithmetic of open sizes against ONNX Runtime
    run.py prepare    only makes the models with random weights, and their tensors

The first run makes a virtual environment beside this file. See README.md.
"""

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import environment

if __name__ == "__main__":
    environment.enter()

import onnx
import onnxruntime

import graphs
import harness
import models
import nodes
import reordered
import size_arithmetic

RTOL = 1e-3  # of the largest magnitude in an output
ELEMENT_RTOL, ELEMENT_ATOL = 1e-3, 1e-5  # reported, not judged
# Behind 8-bit integers, a result between two of them may go either way: a step is near 1e-2.
QUANTISED_RTOL = 5e-2


def say(text):
    print(text, file=sys.stderr, flush=True)


def reference(case):
    """What ONNX Runtime computes, by output name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(case.path), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, case.inputs)))


def reference_seconds(case, threads, limit=1.0):
    """The median time of a run in ONNX Runtime, of those of a second, with so many threads."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads or 0
    session = onnxruntime.InferenceSession(
        str(case.path), options, providers=["CPUExecutionProvider"]
    )
    session.run(None, case.inputs)
    times, end = [], time.perf_counter() + limit
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, case.inputs)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def store(case, number):
    """Writes the tensors of a model case, so that it can be run by hand."""
    folder = environment.WORK / "cases" / f"{case.name}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    expected = reference(case)
    harness.save_npz(folder / "in.npz", case.inputs)
    harness.save_npz(folder / "expected.npz", expected)
    return folder, expected


def numbered(cases):
    """Each case with its number among those of the same model, from 0."""
    seen = {}
    for case in cases:
        number = seen.get(case.name, 0)
        seen[case.name] = number + 1
        yield case, number


def target(args):
    """What tells the program where to run."""
    return ["--target", args.target] if args.target else []


def check_model(program, case, number, args):
    """Runs one model case; returns what there is to say about it."""
    folder, expected = store(case, number)
    outcome = harness.run(
        program,
        case.path,
        folder / "in.npz",
        dims=case.dims,
        threads=args.threads,
        timed=True,
        timeout=args.timeout,
        options=target(args),
    )
    row = {
        "model": case.name,
        "inputs": case.about(),
        "status": outcome.status,
        "reason": outcome.reason,
        "build_seconds": outcome.build_seconds,
        "run_seconds": outcome.run_seconds,
        "wall_seconds": outcome.wall,
        "reference_seconds": None,
        "outputs": {},
    }
    if outcome.status != "ok":
        return row
    row["reference_seconds"] = reference_seconds(case, args.threads)
    problems = [harness.missing_or_extra(outcome.outputs, expected)]
    for name in expected:
        if name not in outcome.outputs:
            continue
        found = harness.difference(
            outcome.outputs[name], expected[name], ELEMENT_RTOL, ELEMENT_ATOL
        )
        row["outputs"][name] = {
            "relative": found.relative,
            "outside": found.outside,
            "total": found.total,
            "problem": found.problem,
        }
        if found.total == 0 and found.problem:  # another dtype or shape
            problems.append(f"{name}: {found.problem}")
        elif not found.relative <= RTOL:
            problems.append(f"{name}: {found.relative:.1e} of the largest value; {found.problem}")
    row["reason"] = "; ".join(problem for problem in problems if problem)
    row["status"] = "failed" if row["reason"] else "pass"
    return row


def seconds(value):
    return "-" if value is None else f"{value:.4g}"


def ratio(row):
    """The time of a run over that of ONNX Runtime."""
    ours, theirs = row["run_seconds"], row["reference_seconds"]
    return "-" if ours is None or not theirs else f"{ours / theirs:.2f}"


def model_table(rows):
    header = ["model", "inputs", "build s", "run s", "ratio", "wall s", "max rel", "outside", "result"]
    lines = []
    for row in rows:
        outputs = row["outputs"].values()
        worst = max((o["relative"] for o in outputs), default=None)
        outside = sum(o["outside"] for o in outputs)
        lines.append(
            [
                row["model"],
                row["inputs"],
                seconds(row["build_seconds"]),
                seconds(row["run_seconds"]),
                ratio(row),
                seconds(row["wall_seconds"]),
                "-" if worst is None else f"{worst:.1e}",
                f"{outside} of {sum(o['total'] for o in outputs)}" if outputs else "-",
                row["status"] + (f": {row['reason']}" if row["reason"] else ""),
            ]
        )
    return harness.table(header, lines)


def models_command(args):
    program = environment.binary(args.binary)
    rows = []
    for case, number in numbered(models.cases(args.only)):
        rows.append(check_model(program, case, number, args))
        row = rows[-1]
        said = f"ratio {ratio(row)}" if row["status"] == "pass" else row["reason"]
        say(f"{case.name} {case.about()}: {row['status']}: {said}")
    passed = sum(row["status"] == "pass" for row in rows)
    names = {row["model"] for row in rows}
    whole = sum(all(r["status"] == "pass" for r in rows if r["model"] == n) for n in names)
    print(model_table(rows))
    print(
        f"\n{passed} of {len(rows)} cases and {whole} of {len(names)} models within "
        f"{RTOL:g} of ONNX Runtime (largest error over largest value, each output).\n"
        f"ratio: median time of a run over that of ONNX Runtime, with as many threads.\n"
        f"outside: elements beyond {ELEMENT_ATOL:g} + {ELEMENT_RTOL:g} * |expected|."
    )
    write_json(args.json, {"threshold": RTOL, "cases": rows})
    return passed == len(rows) and bool(rows)


def nodes_command(args):
    program = environment.binary(args.binary)
    if args.ops:
        text = Path(args.ops).read_text()
    else:
        asked = subprocess.run([program, "ops", "--onnx"], capture_output=True, text=True)
        if asked.returncode != 0:
            sys.exit("`tilewright ops --onnx` does not say the claimed operators; use --ops FILE")
        text = asked.stdout
    try:
        claimed = nodes.claimed_operators(text)
        exceptions = nodes.read_exceptions((environment.HERE / "exceptions.txt").read_text())
        tolerances = nodes.read_tolerances((environment.HERE / "tolerances.txt").read_text())
    except ValueError as error:
        sys.exit(str(error))
    selected, skipped, left_out = nodes.collect(claimed, args.only)
    selected = selected[:: args.every]
    say(f"{len(selected)} cases for {len(claimed)} operators")

    def progress(done, total, result):
        if result.status in nodes.BAD:
            say(f"[{done}/{total}] {result.name}: {result.status}: {result.reason}")
        elif done % 100 == 0:
            say(f"[{done}/{total}]")

    results = nodes.run_all(
        program, selected, exceptions, args.jobs, args.timeout, progress, tolerances, target(args)
    )
    results += skipped
    print(nodes.report(results, left_out))
    write_json(args.json, nodes.as_json(results, left_out))
    return bool(results) and not any(result.status in nodes.BAD for result in results)


def prepare_command(args):
    for case, number in numbered(models.cases(args.only)):
        folder, _ = store(case, number)
        print(f"{case.path}  {folder}")
    return True


def check_graph(program, kind, case, layouts, timeout):
    """What is wrong with a random model under some layouts: (whether it is refused, what)."""
    folder = environment.WORK / kind / str(case.seed)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # As the specification says it: optimised, it computes in integers, and rounds elsewhere.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    limit = QUANTISED_RTOL if case.quantised else RTOL
    found = []
    ranges = [f"--dim={n}={low}..{high}" for n, (low, high) in getattr(case, "ranges", {}).items()]
    for number, inputs in enumerate(case.runs):
        try:
            expected = dict(zip(names, session.run(names, inputs)))
        except Exception:  # of an empty batch it does not infer the size that is left, and the like
            if all(value.size for value in inputs.values()):
                raise
            continue
        harness.save_npz(folder / f"in{number}.npz", inputs)
        harness.save_npz(folder / f"expected{number}.npz", expected)
        for layout in layouts:
            asked = ["--layout", layout] + (["--open", *ranges] if len(case.runs) > 1 else [])
            outcome = harness.run(
                program,
                folder / "model.onnx",
                folder / f"in{number}.npz",
                timeout=timeout,
                options=asked,
            )
            how = f"seed {case.seed}, {' '.join(asked)} on in{number}.npz"
            if outcome.status != "ok":
                refused = outcome.status == "refused"
                found.append((refused, f"{how}: {outcome.status}: {outcome.reason}"))
                continue
            problems = [harness.missing_or_extra(outcome.outputs, expected)]
            for name in set(expected) & set(outcome.outputs):
                far = harness.difference(outcome.outputs[name], expected[name], RTOL, ELEMENT_ATOL)
                if far.problem and (far.total == 0 or not far.relative <= limit):
                    problems.append(f"{name}: {far.relative:.1e}; {far.problem}")
            wrong = "; ".join(problem for problem in problems if problem)
            if wrong:
                found.append((False, f"{how}: {wrong}"))
    return found


def graphs_command(args):
    return random_models(args, graphs.make)


def sizes_command(args):
    return random_models(args, size_arithmetic.make)


def reordered_command(args):
    return random_models(args, reordered.make)


def random_models(args, make):
    program = environment.binary(args.binary)
    refused, wrong = 0, 0

    def work(seed):
        return check_graph(program, args.command, make(seed), args.layouts, args.timeout)

    with ThreadPoolExecutor(args.jobs) as pool:
        for found in pool.map(work, range(args.seed, args.seed + args.count)):
            for is_refusal, problem in found:
                refused, wrong = refused + is_refusal, wrong + (not is_refusal)
                say(problem)
    print(f"{args.count} random models: {refused} runs refused, {wrong} wrong")
    return not wrong and not refused


def write_json(path, content):
    if path:
        Path(path).write_text(json.dumps(content, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (
        ("models", models_command),
        ("nodes", nodes_command),
        ("graphs", graphs_command),
        ("sizes", sizes_command),
        ("reordered", reordered_command),
        ("prepare", prepare_command),
    ):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        if name in ("graphs", "sizes", "reordered"):
            layouts = ["plan"] if name == "sizes" else ["plan", "none", "nchw8c"]
            command.add_argument("--binary", help="the program (default: a release build)")
            command.add_argument("--count", type=int, default=100, help="models")
            command.add_argument("--seed", type=int, default=1, help="of the first model")
            command.add_argument("--layouts", nargs="+", default=layouts)
            command.add_argument("--jobs", type=int, default=2, help="runs at a time (default: 2)")
            command.add_argument("--timeout", type=float, default=60.0, help="seconds for one run")
            continue
        command.add_argument("--only", default="", help="those whose name contains this")
        if name == "prepare":
            continue
        command.add_argument("--binary", help="the program (default: a release build)")
        command.add_argument("--target", help="where the program runs models: `opencl` (default: the CPU)")
        command.add_argument("--json", metavar="FILE", help="write the results there as well")
        limit = 600.0 if name == "models" else 60.0
        command.add_argument("--timeout", type=float, default=limit, help="seconds for one run")
    commands.choices["models"].add_argument("--threads", type=int, help="for the program")
    command = commands.choices["nodes"]
    command.add_argument("--jobs", type=int, default=2, help="runs at a time (default: 2)")
    command.add_argument("--every", type=int, default=1, metavar="N", help="of the cases each N-th")
    command.add_argument("--ops", metavar="FILE", help="claimed operators: NAME MIN MAX lines")
    args = parser.parse_args()
    sys.exit(0 if args.run(args) else 1)


if __name__ == "__main__":
    main()
