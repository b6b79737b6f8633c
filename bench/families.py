#!/usr/bin/env python3
"""Image networks of timm, with fixed and with open sizes: results, run time, time of compilation.

    bench/families.py                         some of each kind
    bench/families.py resnetv2_18 xcit_nano_12_p8_224 --side 96
    bench/families.py --every 40              every 40th architecture that timm has

Each network gets random weights and is exported twice by PyTorch: with fixed sizes, and with its
batch, height and width open. A row shows the time of a run of the fixed one over that of ONNX
Runtime, that of the open one over the fixed one, the processor time of both compilations, and
`WRONG` where a result is not that of ONNX Runtime. Networks that refuse an open
side, or a side other than their own, are exported with their own and an open batch.

The first run makes a virtual environment with PyTorch and timm.
"""

import argparse
import contextlib
import logging
import os
import resource
import statistics
import sys
import tempfile
import timeit
import warnings
from pathlib import Path

import peers
import python_environment

REQUIREMENTS = [
    peers.CONFORMANCE / "onnx" / "requirements-exports.txt",
    peers.HERE / "requirements-families.txt",
]
FOLDER = peers.HERE / ".families"

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    python_environment.enter(FOLDER, [(file, []) for file in REQUIREMENTS])

import numpy as np
import timm
import torch

import harness

SOME = [
    "resnet18", "resnetv2_18", "seresnet18", "skresnet18", "res2net50_14w_8s", "resnext26ts",
    "densenet121", "dpn48b", "vgg11_bn", "inception_v3", "xception41p", "repvgg_a0", "regnety_002",
    "mobilenetv3_small_100", "efficientnet_b0", "ghostnet_100", "mixnet_s",
    "hrnet_w18_small", "dla34", "cspresnet50", "nfnet_l0", "convnext_atto",
    "edgenext_xx_small", "mobilevit_xxs", "fastvit_t8", "efficientformerv2_s0", "poolformer_s12",
    "levit_128s", "vit_tiny_patch16_224", "deit_tiny_patch16_224", "mixer_s32_224",
    "swin_tiny_patch4_window7_224", "xcit_nano_12_p8_224", "crossvit_tiny_240", "pvt_v2_b0",
]  # fmt: skip

RATIOS = ["fixed over ONNX Runtime", "open over fixed", "compilation, open over fixed"]
SECONDS = 0.7  # that a run is measured for
RTOL, ATOL = 2e-3, 1e-4


def export(network, side, opens, path):
    """Writes a model whose axes named in `opens` are open."""
    axes = {"x": dict(opens)} if opens else None
    with quiet(), torch.no_grad():
        torch.onnx.export(
            network, torch.randn(1, 3, side, side), str(path), input_names=["x"],
            dynamic_axes=axes, opset_version=17, dynamo=False,
        )  # fmt: skip


@contextlib.contextmanager
def quiet():
    """Drops what is printed, also by the exporter's C++, which does not go through Python."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
        os.dup2(nothing.fileno(), 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)


def exports(name, side, folder):
    """The side of the images, the fixed model and the open one (or why there is none)."""
    torch.manual_seed(1)
    network = timm.create_model(name, pretrained=False).eval()
    own = network.default_cfg["input_size"][-1]
    everything = {0: "n", 2: "h", 3: "w"}
    for side, opens in [(side, everything), (own, everything), (own, {0: "n"})]:
        try:
            export(network, side, None, folder / "fixed.onnx")
            export(network, side, opens, folder / "open.onnx")
            return side, len(opens)
        except Exception as error:  # whatever the exporter cannot do with this side
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    raise peers.Failed(f"not exported: {why[:150]}")


def ours(program, path, folder, expected, threads, options):
    """Seconds of a run, processor seconds of the whole process, and whether the result is right."""
    options = ["--no-cache", "--seconds", str(SECONDS), *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = harness.run(program, path, folder / "in.npz", threads=threads, timed=True, options=options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.status != "ok":
        raise peers.Failed(f"{done.status}: {done.reason}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    pairs = zip(done.outputs.values(), expected)
    far = [harness.difference(own, other, RTOL, ATOL) for own, other in pairs]
    return {
        "run": done.run_seconds,
        "cpu": cpu - SECONDS * threads,
        "right": all(not d.problem or (d.total and d.relative <= RTOL) for d in far),
    }


def measure(program, name, side, rounds, threads):
    """One row: its text, and the ratios in it."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        side, opens = exports(name, side, folder)
        x = np.random.default_rng(2).standard_normal((1, 3, side, side)).astype(np.float32)
        harness.save_npz(folder / "in.npz", {"x": x})
        peer = peers.onnxruntime(str(folder / "fixed.onnx"), {"x": x}, threads)
        expected = peer()
        found = {"fixed": [], "open": []}
        theirs = []
        for _ in range(rounds):
            for kind, options in [("fixed", []), ("open", ["--open"])]:
                path = folder / f"{kind}.onnx"
                found[kind].append(ours(program, path, folder, expected, threads, options))
            times = timeit.repeat(peer, number=1, repeat=30)
            theirs.append(statistics.median(times))
    run, cpu = ({k: min(r[of] for r in found[k]) for k in found} for of in ("run", "cpu"))
    ratios = {
        RATIOS[0]: run["fixed"] / min(theirs),
        RATIOS[1]: run["open"] / run["fixed"],
        RATIOS[2]: cpu["open"] / cpu["fixed"],
    }
    wrong = [kind for kind in found if not all(r["right"] for r in found[kind])]
    cells = [f"{name:34}{side:4} {'nhw'[:opens]:4}{1e3 * run['fixed']:8.2f} ms"]
    cells += [f"{value:5.2f}" for value in ratios.values()]
    cells += [f"compiled in {cpu['fixed']:.1f} and {cpu['open']:.1f} CPU s"]
    cells += [f"WRONG: {kind}" for kind in wrong]
    return "  ".join(cells), ratios


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="architectures of timm (default: some)")
    parser.add_argument("--every", type=int, help="all architectures, this many apart")
    parser.add_argument("--first", type=int, default=0, help="where to begin with --every")
    parser.add_argument("--side", type=int, default=128, help="of the images (default: 128)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each (default: 1)")
    parser.add_argument("--threads", type=int, default=1, help="of each program (default: 1)")
    parser.add_argument("--binary", help="the program (default: a release build)")
    args = parser.parse_args()
    program = python_environment.binary(args.binary)
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    names = args.names or SOME
    if args.every:
        names = timm.list_models()[args.first :: args.every]
    print("side, open axes, a run of fixed sizes; ratios: " + ", ".join(RATIOS))
    rows = []
    for name in names:
        try:
            text, ratios = measure(program, name, args.side, args.rounds, args.threads)
            rows.append(ratios)
        except Exception as error:  # a network that does not export, or is refused, is a row too
            text = f"{name:34}{type(error).__name__}: {str(error)[:200]}"
        print(text, flush=True)
    for kind in RATIOS if rows else []:
        values = [row[kind] for row in rows]
        print(f"{kind}: median {statistics.median(values):.2f}, worst {max(values):.2f}")


if __name__ == "__main__":
    main()
