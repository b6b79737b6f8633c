#!/usr/bin/env python3
"""Compares layout plans with those of an outside exact solver, CP-SAT.

    run.py --count 300 --seed 1      random problems, which the crate's example writes and plans
    run.py --models A.onnx B.onnx    what `tilewright plan` is asked for models
    run.py FOLDER                    NAME.problem.json with NAME.plan.json, or without one where
                                     nothing is allowed

The exit code is 1 if anything differs. See README.md.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import python_environment  # noqa: E402

if __name__ == "__main__":
    python_environment.enter(HERE, [(HERE / "requirements.txt", [])])

from ortools.sat.python import cp_model  # noqa: E402


class Timeout(Exception):
    """The outside solver has not finished."""


def optimum(problem, seconds):
    """The least cost of a problem, or `None` if everything needs something forbidden."""
    model = cp_model.CpModel()
    terms = []
    # For each tensor: whether it is produced in a layout, and whether it must exist in it.
    produced = [[model.new_bool_var("") for _ in t["layouts"]] for t in problem["tensors"]]
    needed = [[model.new_bool_var("") for _ in t["layouts"]] for t in problem["tensors"]]
    for tensor, made, need in zip(problem["tensors"], produced, needed):
        model.add_exactly_one(made)
        if tensor["given"] is not None:
            model.add(made[tensor["given"]] == 1)
        for layout in tensor["required"]:
            model.add(need[layout] == 1)
        # A layout that must exist comes from one that is produced; from itself it costs nothing.
        for j, need_j in enumerate(need):
            sources = []
            for i, made_i in enumerate(made):
                cost = 0 if i == j else tensor["conversions"][i][j]
                if cost is not None:
                    source = model.new_bool_var("")
                    model.add_implication(source, made_i)
                    terms.append(cost * source)
                    sources.append(source)
            model.add(sum(sources) >= need_j)
    choices = []
    for call in problem["calls"]:
        runs = [model.new_bool_var("") for _ in call["alternatives"]]
        model.add_exactly_one(runs)
        choices.append(runs)
        for run, alternative in zip(runs, call["alternatives"]):
            if alternative["cost"] is None:
                model.add(run == 0)
            else:
                terms.append(alternative["cost"] * run)
        # One alternative runs, so that the sums are at most one; this is tighter than one by one.
        reads, writes = collections.defaultdict(list), collections.defaultdict(list)
        for run, alternative in zip(runs, call["alternatives"]):
            for use in {(use["tensor"], use["layout"]) for use in alternative["reads"]}:
                reads[use].append(run)
            for use in alternative["writes"]:
                writes[use["tensor"], use["layout"]].append(run)
        for (tensor, layout), users in reads.items():
            model.add(sum(users) <= needed[tensor][layout])
        for (tensor, layout), makers in writes.items():
            model.add(sum(makers) <= produced[tensor][layout])
    model.minimize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    solver.parameters.relative_gap_limit = 0.0
    solver.parameters.absolute_gap_limit = 0.0
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        raise Timeout(solver.status_name(status))
    # In integers; the solver's own objective is a float.
    return recomputed(problem, [[solver.value(run) for run in runs].index(1) for runs in choices])


def recomputed(problem, choices):
    """What a choice costs, `None` if it is forbidden."""
    total, made, needed = 0, {}, set()
    for t, tensor in enumerate(problem["tensors"]):
        made[t] = tensor["given"]
        needed |= {(t, layout) for layout in tensor["required"]}
    for call, choice in zip(problem["calls"], choices, strict=True):
        alternative = call["alternatives"][choice]
        if alternative["cost"] is None:
            return None
        total += alternative["cost"]
        made |= {use["tensor"]: use["layout"] for use in alternative["writes"]}
        needed |= {(use["tensor"], use["layout"]) for use in alternative["reads"]}
    for t, layout in needed:
        if made[t] != layout:
            cost = problem["tensors"][t]["conversions"][made[t]][layout]
            if cost is None:
                return None
            total += cost
    return total


def compare(path, seconds):
    """A word for what came out, and a line for what is wrong."""
    problem = json.loads(path.read_text())
    planned = path.with_name(path.name.replace(".problem.", ".plan."))
    plan = json.loads(planned.read_text()) if planned.exists() else None
    try:
        least = optimum(problem, seconds)
    except Timeout as status:
        return "undecided", f"{path.name}: {status}"
    if plan is None:
        if least is None:
            return "infeasible", None
        return "wrong", f"{path.name}: no plan, and one costs {least}"
    objective, bound = plan["objective"], plan["bound"]
    cost = recomputed(problem, [call["choice"] for call in plan["calls"]])
    if cost != objective:
        return "wrong", f"{path.name}: the plan costs {cost} and says {objective}"
    if least is None or not bound <= least <= objective:
        return "wrong", f"{path.name}: {least} is not within {bound} and {objective}"
    if bound < objective:
        return "open", f"{path.name}: the optimum {least} is between {bound} and {objective}"
    return "equal", None


def write(folder, count, seed):
    """Random problems with their plans."""
    command = ["cargo", "run", "--release", "--quiet", "--package", "tilewright-layout"]
    command += ["--example", "problems", "--", folder, str(count), str(seed)]
    if subprocess.run(command, cwd=python_environment.ROOT).returncode != 0:
        print("the example that writes problems failed", file=sys.stderr)
        sys.exit(2)


def plan(folder, models):
    """The problems of models, each in a folder of its own, with their plans."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "tilewright-cli"]
    subprocess.run(build, cwd=python_environment.ROOT, check=True)
    program = python_environment.ROOT / "target" / "release" / "tilewright"
    for k, model in enumerate(models):
        own = Path(folder) / f"{k}_{Path(model).stem}"
        own.mkdir()
        command = [program, "plan", model, "--problem", own]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", help="problems and plans (default: random ones)")
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="the problems of these models")
    parser.add_argument("--count", type=int, default=300, help="random problems")
    parser.add_argument("--seed", type=int, default=1, help="of the first one; others follow")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one problem")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tilewright-plan-") as made:
        folder = Path(arguments.folder or made)
        if arguments.models:
            plan(made, arguments.models)
        elif not arguments.folder:
            write(made, arguments.count, arguments.seed)
        paths = sorted(folder.rglob("*.problem.json"))
        with ProcessPoolExecutor(max_workers=arguments.jobs) as pool:
            results = list(pool.map(compare, paths, [arguments.timeout] * len(paths)))
    for _, line in results:
        if line:
            print(line)
    words = [word for word, _ in results]
    print(", ".join(f"{word} {words.count(word)}" for word in sorted(set(words))) or "no problem")
    return 1 if "wrong" in words or not words else 0


if __name__ == "__main__":
    sys.exit(main())
