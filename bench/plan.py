#!/usr/bin/env python3
"""Checks what layout plans predict: the plan and every fixed layout, predicted and measured.

    bench/plan.py                          all models, one thread
    bench/plan.py --only resnet --rounds 5

`tilewright plan --json` says in cycles what the plan and the fixed layouts cost; `run --time` measures
them, taking turns. The regret is the plan's time over that of the fastest. Clocks differ: the
prediction of a layout is compared with its time by way of the model's median of cycles in a second.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import peers

if __name__ == "__main__":
    peers.enter()

import compare
import harness

LAYOUTS = ["plan", "none", "nhwc", "nchw16c", "nchw8c"]
HEADER = ["model", "inputs", *[f"{name} ms" for name in LAYOUTS], "regret", "worst error", "gap"]


def predicted(program, case, inputs):
    """Cycles of the plan and of each fixed layout, and the gap of the proof."""
    command = [str(program), "plan", str(case.path), "--json", "--inputs", str(inputs)]
    command += [part for dim in case.dims.items() for part in ("--dim", "{}={}".format(*dim))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise peers.Failed(" ".join(done.stderr.split())[:200])
    plan = json.loads(done.stdout)
    return {"plan": plan["objective"], **plan["alternatives"]}, plan["gap"]


def measured(program, case, inputs, args, cores):
    """The shortest time of each layout, all taking turns."""
    sizes = [part for dim in case.dims.items() for part in ("--dim", "{}={}".format(*dim))]
    own = {
        name: peers.Tilewright(
            program, case.path, inputs, args.threads, cores, [*sizes, "--layout", name]
        )
        for name in LAYOUTS
    }
    best = dict.fromkeys(LAYOUTS, float("inf"))
    for _ in range(args.rounds):
        for name, runner in own.items():
            best[name] = min(best[name], runner.turn(args.seconds)[1])
    return best


def row(program, case, args, cores):
    """The texts of a row, and its regret and errors."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "in.npz"
        harness.save_npz(inputs, case.inputs)
        cycles, gap = predicted(program, case, inputs)
        times = measured(program, case, inputs, args, cores)
    known = [name for name in LAYOUTS if cycles.get(name)]
    clock = statistics.median(cycles[name] / times[name] for name in known)
    errors = [cycles[name] / clock / times[name] - 1 for name in known]
    regret = times["plan"] / min(times.values())
    cells = [case.name, case.about(), *[f"{1e3 * times[name]:.3f}" for name in LAYOUTS]]
    return [*cells, f"{regret:.3f}", f"{max(errors, key=abs):+.0%}", f"{gap:.2%}"], regret


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--threads", type=int, default=1, help="threads (default: 1)")
    parser.add_argument("--rounds", type=int, default=3, help="turns for each (default: 3)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn (default: 0.5)")
    args = parser.parse_args()
    if args.rounds < 1 or args.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    program, cores = peers.binary(args.binary), peers.some_cores(args.threads)
    rows, regrets = [], []
    with tempfile.TemporaryDirectory() as folder:
        for case in compare.cases(folder, args.only):
            compare.say(f"{case.name} {case.about()}")
            try:
                cells, regret = row(program, case, args, cores)
            except peers.Failed as error:
                compare.say(f"  {error}")
                continue
            rows.append(cells)
            regrets.append(regret)
    print(harness.table(HEADER, rows))
    if regrets:
        mean = statistics.geometric_mean(regrets)
        print(f"\nregret: geometric mean {mean:.3f}, worst {max(regrets):.3f}")
    sys.exit(0 if regrets else 1)


if __name__ == "__main__":
    main()
