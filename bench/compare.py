#!/usr/bin/env python3
"""Times Tilewright against ONNX Runtime, OpenVINO, TVM and tract on whole models.

    bench/compare.py                          all models, one thread
    bench/compare.py --only resnet --threads 2
    bench/compare.py --peers onnxruntime,openvino --rounds 9
    bench/compare.py --report                 also writes docs/performance.md and its plot

All take turns: in each round Tilewright runs (in a process of its own, timing itself with `--time`),
then each peer for about as long, in its own process, on the same processor cores. What slows the
machine down for a while so slows all of them, and the ratio of a round stands.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

import peers

if __name__ == "__main__":
    peers.enter()

import numpy
import onnx

import harness
import models
import peak
import report
import synthetic
import work


def say(text):
    print(text, file=sys.stderr, flush=True)


def cases(folder, only):
    """The models of the outside check, and those of ragged sizes, whose names contain `only`."""
    for case in models.cases(only):
        if not case.note:  # the same model stored in another way
            yield case
    random = numpy.random.default_rng(0)
    for model in synthetic.networks():
        if only not in model.graph.name:
            continue
        path = Path(folder) / f"{model.graph.name}.onnx"
        onnx.save(model, path)
        inputs = {}
        for value in model.graph.input:
            shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
            inputs[value.name] = random.standard_normal(shape).astype(numpy.float32)
        yield models.Case(model.graph.name, path, inputs)


def start_peers(names, case, inputs, args, cores):
    """The peers that can run a model."""
    started = []
    for name in names:
        try:
            started.append(
                peers.Peer(name, case.path, inputs, args.threads, cores, args.patience)
            )
        except peers.Failed as error:
            say(f"  {peers.NAMES[name]}: {error}")
    return started


def compare(program, case, names, args, cores, most, rate, options):
    """One row: what everybody took in every round."""
    model = onnx.load(case.path)
    shapes = {name: value.shape for name, value in case.inputs.items()}
    row = {"model": case.name, "inputs": case.about(), "flops": work.flops(model, shapes), "peak": most,
           "floor": work.floor(model, shapes, most, rate, peak.last_cache())}
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "in.npz"
        harness.save_npz(inputs, case.inputs)
        sizes = [part for dim in case.dims.items() for part in ("--dim", "{}={}".format(*dim))]
        own = peers.Tilewright(program, case.path, inputs, args.threads, cores, [*sizes, *options])
        others = start_peers(names, case, inputs, args, cores)
        turns = {own.name: [], **{peer.name: [] for peer in others}}
        try:
            for _ in range(args.rounds):
                turns[own.name].append(own.turn(args.seconds))
                for peer in list(others):
                    try:
                        times = peer.times(args.seconds)
                        turns[peer.name].append((statistics.median(times), min(times)))
                    except peers.Failed as error:
                        say(f"  {peers.NAMES[peer.name]}: {error}")
                        others.remove(peer)
                        del turns[peer.name]
        except peers.Failed as error:
            return {**row, "reason": str(error)}
        finally:
            for peer in others:
                peer.close()
    row["engines"] = {
        who.name: {
            "median": statistics.median(middle for middle, _ in turns[who.name]),
            "best": min(best for _, best in turns[who.name]),
            "compile": who.compile,
            "memory": who.memory,
        }
        for who in [own, *others]
    }
    # The best peer of each round, as the machine was then.
    pairs = zip(*(turns[name] for name in turns if name != own.name)) if others else []
    ratios = [mine[0] / min(p[0] for p in rest) for mine, rest in zip(turns[own.name], pairs)]
    if ratios:
        row.update(ratio=statistics.median(ratios), ratios=ratios)
    return row


def twins(rows):
    """Models with channels last, against the same with channels first: our time as a part of that."""
    known = {row["model"]: row["engines"] for row in rows if "engines" in row}
    for name, engines in known.items():
        twin = known.get(name.removesuffix("_channels_last"), engines)
        if twin is not engines:
            both = ((who, engines[who]["best"] / twin[who]["best"]) for who in engines if who in twin)
            yield name, ", ".join(f"{who} {ratio:.2f}" for who, ratio in both)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--peers", default=",".join(peers.PEERS), help="who is compared with")
    parser.add_argument("--threads", type=int, default=1, help="threads of each (default: 1)")
    parser.add_argument("--rounds", type=int, default=5, help="turns for each (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn (default: 1)")
    parser.add_argument(
        "--patience", type=float, default=300.0, help="seconds for a peer to answer (default: 300)"
    )
    parser.add_argument("--layout", help="run Tilewright with this layout policy")
    parser.add_argument(
        "--fast-math", metavar="ERROR", nargs="?", const="1e-3",
        help="let Tilewright compute convolutions by transforms, within this error (default: 1e-3)",
    )
    parser.add_argument(
        "--avx2", action="store_true",
        help="no vectors of 512 bits: the peers that can be told so, which is OpenVINO, and the peak",
    )
    parser.add_argument("--json", metavar="FILE", help="write the results there as well")
    parser.add_argument("--kernels", metavar="FILE", help="results of kernels.py, for the plot")
    parser.add_argument("--report", action="store_true", help="write docs/performance.md")
    args = parser.parse_args()
    if args.rounds < 1 or args.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    names = [name for name in args.peers.split(",") if name]
    unknown = [name for name in names if name not in peers.PEERS]
    if unknown:
        parser.error(f"unknown peers: {', '.join(unknown)}")
    program, cores = peers.binary(args.binary), peers.some_cores(args.threads)
    if not peers.hold(os.getpid(), cores):
        say("this system cannot hold a process on some cores")
    options = ["--layout", args.layout] if args.layout else []
    options += [f"--fast-math={args.fast_math}"] if args.fast_math else []
    if args.fast_math and args.report:
        parser.error("the report is of exact arithmetic: --report without --fast-math")
    narrow = ["--cpu", "x86-64-v3"] if args.avx2 else []
    options += narrow
    if args.avx2:
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
        names = [name for name in names if name in peers.AVX2]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        def alone(path, threads=1):
            return peers.Tilewright(program, path, None, threads, cores, ["--no-schedule", *narrow])

        most = peak.measure(alone, folder) * args.threads
        rate = peak.read_rate(lambda path: alone(path, args.threads), folder, args.threads)
        say(f"peak: {most / 1e9:.1f} GFLOP/s, memory: {rate / 1e9:.1f} GB/s on {args.threads} cores")
        for case in cases(folder, args.only):
            say(f"{case.name} {case.about()}")
            rows.append(compare(program, case, names, args, cores, most, rate, options))
    print(harness.table(report.HEADER, [report.cells(row) for row in rows]))
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"\nratio to the best peer: geometric mean {statistics.geometric_mean(ratios):.2f}")
    for name, ratios_of in twins(rows):
        print(f"{name} over its twin: {ratios_of}")
    for row in rows:
        if "reason" in row:
            print(f"{row['model']}: {row['reason']}")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=2) + "\n")
    if args.report:
        kernels = json.loads(Path(args.kernels).read_text()) if args.kernels else []
        report.write(rows, kernels, args)
    sys.exit(0 if rows and len(ratios) == len(rows) else 1)


if __name__ == "__main__":
    main()
