#!/usr/bin/env python3
"""Times single contractions against ONNX Runtime, over a grid of shapes, one thread each.

    bench/kernels.py                     products and convolutions of sizes 17..256, and some more
    bench/kernels.py --only matmul_127   those whose name contains this
    bench/kernels.py --sizes 63,64,65 --seconds 0.1

The two take turns. Beside the times stand the useful GFLOP/s, their share of the peak that a kernel
of our own reaches in the same run, and the ratio of the times. Below the table: how much more time a
useful operation takes at a size than at the next multiple of 16.
"""

import argparse
import json
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
import peak
import synthetic
import work

SIZES = (17, 24, 31, 33, 47, 49, 63, 65, 79, 96, 100, 113, 127, 129, 160, 193, 224, 255)


def grid(sizes):
    """Kind, size and model of every contraction; others than the grid have no size."""
    all_sizes = sorted({s for size in sizes for s in (size, -(-size // 16) * 16)})
    for size in all_sizes:
        yield "matmul", size, synthetic.product(size, size, size)
    for size in all_sizes:
        # As much work for many channels as for few.
        yield "conv", size, synthetic.convolution(size, 56 if size < 48 else 28 if size < 112 else 14)
    yield "matmul", None, synthetic.product(1024, 1024, 1024)
    for channels, size in ((64, 56), (65, 57), (17, 112), (129, 29), (512, 7)):
        yield "conv", None, synthetic.convolution(channels, size)
    for rows, inner, columns in ((1, 1021, 1021), (13, 768, 768), (64, 512, 10), (127, 509, 1000)):
        yield "matmul", None, synthetic.product(rows, inner, columns)


def random_inputs(model):
    """Values for the inputs, and their shapes."""
    random = numpy.random.default_rng(0)
    dims = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    return {n: random.standard_normal(s).astype(numpy.float32) for n, s in dims.items()}, dims


def time_one(program, model, folder, seconds, rounds, cores):
    """Shortest times of both."""
    inputs, _ = random_inputs(model)
    path, given = Path(folder) / "model.onnx", Path(folder) / "in.npz"
    onnx.save(model, path)
    harness.save_npz(given, inputs)
    own = peers.Tilewright(program, path, given, 1, cores)
    other = peers.Peer("onnxruntime", path, given, 1, cores)
    try:
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(own.turn(seconds)[1])
            theirs.append(min(other.times(seconds)))
    finally:
        other.close()
    return min(ours), min(theirs), own.compile


def cliffs(rows):
    """For each size of the grid that 16 does not divide: its time per operation over the next's."""
    rate = {(r["kind"], r["size"]): r["ours"] / r["flops"] for r in rows if r["size"]}
    found = []
    for (kind, size), value in rate.items():
        whole = rate.get((kind, -(-size // 16) * 16))
        if size % 16 and whole:
            found.append((value / whole, f"{kind} {size}"))
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="contractions whose name contains this")
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--sizes", help="sizes of the grid, with commas between them")
    parser.add_argument("--rounds", type=int, default=2, help="turns for each (default: 2)")
    parser.add_argument("--seconds", type=float, default=0.2, help="of a turn (default: 0.2)")
    parser.add_argument("--json", metavar="FILE", help="write the results there as well")
    args = parser.parse_args()
    program, cores = peers.binary(args.binary), peers.some_cores(1)
    sizes = SIZES if args.sizes is None else [int(s) for s in args.sizes.split(",")]
    rows, lines = [], []
    with tempfile.TemporaryDirectory() as folder:
        def alone(path):
            return peers.Tilewright(program, path, None, 1, cores, ["--no-schedule"])

        most = peak.measure(alone, folder)
        print(f"peak of one core: {most / 1e9:.1f} GFLOP/s")
        for kind, size, model in grid(sizes):
            name = model.graph.name
            if args.only not in name:
                continue
            flops = work.flops(model, random_inputs(model)[1])
            try:
                both = time_one(program, model, folder, args.seconds, args.rounds, cores)
            except peers.Failed as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            ours, theirs, compiled = both
            rows.append(
                {"name": name, "kind": kind, "size": size, "flops": flops, "ours": ours,
                 "onnxruntime": theirs, "compile": compiled, "peak": most}
            )
            lines.append(
                [name, f"{1e3 * ours:.4f}", f"{flops / ours / 1e9:.1f}", f"{flops / ours / most:.2f}",
                 f"{flops / theirs / most:.2f}", f"{ours / theirs:.2f}", f"{compiled:.2f}"]
            )
            print(f"{name}: {lines[-1][2]} GFLOP/s, ratio {lines[-1][5]}", file=sys.stderr)
    header = ["contraction", "ms", "GFLOP/s", "of peak", "ORT of peak", "ratio to ORT", "compile s"]
    print(harness.table(header, lines))
    if rows:
        mean = statistics.geometric_mean(r["ours"] / r["onnxruntime"] for r in rows)
        print(f"\nratio to ONNX Runtime: geometric mean {mean:.2f}")
    ragged = cliffs(rows)
    if ragged:
        middle = statistics.median(value for value, _ in ragged)
        (worst, where) = ragged[-1]
        print(f"time per operation over that of the next multiple of 16: median {middle:.2f}, "
              f"worst {worst:.2f} ({where})")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=2) + "\n")
    sys.exit(0 if rows else 1)


if __name__ == "__main__":
    main()
