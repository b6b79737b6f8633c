#!/usr/bin/env python3
"""Checks what layout plans predict: of every kernel, and of whole models in all layouts.

    bench/plan.py                          all models, one thread
    bench/plan.py --only resnet --rounds 5
    bench/plan.py --tune 60s               after `tilewright tune` measured each model for so long
    bench/plan.py --kernels                also every kernel: predicted, measured, error

Whole models run in the chosen layouts, in the best plans by their costs (`--plans`) and in the fixed
ones, all taking turns. The fastest of many is fast by chance, too. So those that were the fastest run
again, in turns with the chosen layouts (`--pairs`), and the medians of the ratios count: `of it` is the
time of the chosen layouts over that of the best fixed ones, and the regret over that of the fastest of
all, which is at least 1. `noise` is what the chosen layouts say of themselves in the same turns: smaller
differences say nothing. Kernels are those of the best plan by its costs (`run --profile=FILE`,
`plan --profile FILE`). Where nothing was measured before, predictions are cycles, and become times by
the model's median.
"""

import argparse
import json
import os
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

FIXED = ["none", "nhwc", "nchw16c", "nchw8c"]
NEAR = 0.2
# Nanoseconds: what the ticks of a clock say of shorter kernels is off by about as much as NEAR.
SHORTEST = 200
SAME = 0.03
HEADER = ["model", "inputs", "chosen ms", "best ms", "best layout", "best fixed ms", "of it", "regret"]
HEADER += ["noise", "worst error", "gap", "kernels", "within 20 %", "of their time", "errors p10, p90"]
KERNEL_HEADER = ["value", "fused", "predicted us", "measured us", "error"]


def tilewright(command):
    """What a command prints."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise peers.Failed(" ".join(done.stderr.split())[:200])
    return done.stdout


def layouts(count):
    """What is run: the chosen layouts, the best plans, the fixed ones."""
    return ["plan", *[f"plan:{k}" for k in range(1, count + 1)], *FIXED]


def measured(program, case, inputs, args, cores, sizes):
    """The shortest time of each layout, all taking turns, less where there are fewer plans; and the
    ratios of `against`."""
    own = {
        name: peers.Tilewright(
            program, case.path, inputs, args.threads, cores, [*sizes, "--layout", name]
        )
        for name in layouts(args.plans)
    }
    best = {}
    for _ in range(args.rounds):
        for name, runner in list(own.items()):
            try:
                time = runner.turn(args.seconds)[1]
            except peers.Failed as error:
                if "there is no plan" not in str(error):
                    raise
                del own[name]
                continue
            best[name] = min(best.get(name, float("inf")), time)
    return best, against(own, best, args)


def against(own, best, args):
    """The time of the chosen layouts over that of the fastest, of the fastest fixed ones, and of
    themselves: medians over pairs of turns, one behind the other."""
    # Without measurements the best plan by its costs is what is chosen.
    rivals = [name for name in best if name != "plan" and (args.tune or name != "plan:1")]
    fastest = min(rivals, key=best.get)
    names = [fastest, min(FIXED, key=best.get), "plan"]
    ratios = {name: [] for name in names}
    for _ in range(args.pairs):
        for name, found in ratios.items():
            pair = [own[which].turn(args.seconds)[1] for which in ("plan", name)]
            found.append(pair[0] / pair[1])
    return [(name, statistics.median(ratios[name])) for name in names]


def kernels(profile):
    """Of each kernel that has a price and a time that a clock can tell: value, what is fused, predicted and
    measured nanoseconds."""
    known = [k for k in profile["kernels"] if k["cost"] > 0 and k["measured"] >= SHORTEST]
    return [(k["value"], k["fused"], k["predicted"], k["measured"]) for k in known]


def agreement(rows):
    """How many kernels are predicted within a fifth, their part of the time, and the errors."""
    if not rows:
        return ["0", "", "", ""]
    errors = sorted(predicted / time - 1 for *_, predicted, time in rows)
    near = [time for *_, predicted, time in rows if abs(predicted / time - 1) <= NEAR]
    part = sum(near) / sum(time for *_, time in rows)
    low, high = (errors[int(q * (len(errors) - 1))] for q in (0.1, 0.9))
    return [str(len(rows)), f"{len(near) / len(rows):.0%}", f"{part:.0%}", f"{low:+.0%}, {high:+.0%}"]


def row(program, case, args, cores):
    """The texts of a row, its regret and the time over that of the best fixed layout, and its kernels."""
    sizes = [part for dim in case.dims.items() for part in ("--dim", "{}={}".format(*dim))]
    with tempfile.TemporaryDirectory() as folder:
        inputs, profile = Path(folder) / "in.npz", Path(folder) / "profile.json"
        harness.save_npz(inputs, case.inputs)
        given = [*sizes, "--inputs", inputs, "--threads", args.threads]
        os.environ["TILEWRIGHT_TUNING"] = "off"
        if args.tune:
            os.environ["TILEWRIGHT_TUNING"] = str(Path(folder) / "tuning.sqlite")
            tilewright([program, "tune", case.path, *given, "--budget", args.tune])
        run = [program, "run", case.path, *given, "--layout", "plan:1", "--seconds", args.seconds]
        tilewright([*run, f"--profile={profile}"])
        plan = [program, "plan", case.path, *given, "--json", "--profile", profile]
        plan = json.loads(tilewright(plan))
        times, ratios = measured(program, case, inputs, args, cores, sizes)
    cost = {"plan:1": plan["objective"], **plan["alternatives"]}
    known = [name for name in ["plan:1", *FIXED] if cost.get(name)]
    clock = statistics.median(cost[name] / times[name] for name in known)
    errors = [cost[name] / clock / times[name] - 1 for name in known]
    (best, regret), (fixed, of_fixed), (_, noise) = ratios
    best, regret = (best, regret) if regret > 1 else ("plan", 1.0)
    cells = [case.name, case.about(), *(f"{1e3 * times[name]:.3f}" for name in ("plan", best)), best]
    cells += [f"{1e3 * times[fixed]:.3f}", f"{of_fixed:.3f}", f"{regret:.3f}", f"{abs(noise - 1):.1%}"]
    cells += [f"{max(errors, key=abs):+.0%}"]
    rows = kernels(plan["profile"])
    cells = [*cells, f"{plan['gap']:.2%}", *agreement(rows)]
    return cells, (regret, of_fixed), rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--threads", type=int, default=1, help="threads (default: 1)")
    parser.add_argument("--rounds", type=int, default=3, help="turns for each (default: 3)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn (default: 0.5)")
    parser.add_argument("--pairs", type=int, default=5, help="turns against the fastest (default: 5)")
    parser.add_argument("--plans", type=int, default=8, help="best plans to run (default: 8, at most)")
    parser.add_argument("--tune", metavar="TIME", help="measure each model for so long before")
    parser.add_argument("--kernels", action="store_true", help="also print every kernel")
    args = parser.parse_args()
    if min(args.rounds, args.pairs, args.threads) < 1 or not 1 <= args.plans <= 8:
        parser.error("--rounds, --pairs and --threads must be at least 1, --plans from 1 to 8")
    program, cores = peers.binary(args.binary), peers.some_cores(args.threads)
    rows, regrets, every = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for case in compare.cases(folder, args.only):
            compare.say(f"{case.name} {case.about()}")
            try:
                cells, regret, found = row(program, case, args, cores)
            except peers.Failed as error:
                compare.say(f"  {error}")
                continue
            compare.say("  " + ", ".join(f"{head} {cell}" for head, cell in zip(HEADER[2:], cells[2:])))
            rows.append(cells)
            regrets.append(regret)
            every.extend(found)
            if args.kernels:
                texts = [
                    [value, " ".join(fused), f"{p / 1e3:.1f}", f"{t / 1e3:.1f}", f"{p / t - 1:+.0%}"]
                    for value, fused, p, t in found
                ]
                print(f"\n{case.name}\n\n{harness.table(KERNEL_HEADER, texts)}\n")
    print(harness.table(HEADER, rows))
    if regrets:
        regrets, fixed = zip(*regrets)
        mean = statistics.geometric_mean(regrets)
        print(f"\nregret: geometric mean {mean:.3f}, worst {max(regrets):.3f}")
        slower, faster = sum(r > 1 + SAME for r in fixed), sum(r < 1 for r in fixed)
        print(f"of {len(fixed)} models {slower} are slower than in the best fixed layout", end=" ")
        print(f"by more than {SAME:.0%}, and {faster} faster")
        count, near, part, errors = agreement(every)
        print(f"kernels: {count}, {near} within 20 %, which are {part} of the time; errors {errors}")
    sys.exit(0 if regrets else 1)


if __name__ == "__main__":
    main()
