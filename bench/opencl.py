#!/usr/bin/env python3
"""Times code for a device of OpenCL: models against our own code for the processor, products against CLBlast.

    bench/opencl.py                          all of it, on the first device
    bench/opencl.py --only resnet50          models and products whose name contains this
    bench/opencl.py --binary PROGRAM --rounds 5

A model runs on the device and on the processor in turns, with as many threads as the device has units; the
ratio is that of the shortest times. Both include the copies of inputs and outputs. The models are those of
`conformance/onnx` that `run.py prepare` made, and an encoder of 77 tokens.

A product of float32 is timed on memory of the device, in one process with `CLBlastSgemm` (Debian:
`libclblast-dev`; left out where it is missing).

The same models and products of four sizes run with tinygrad on the same device, where this Python has it (`pip install
tinygrad`): compiled calls, without the copies of inputs and outputs.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "conformance/onnx/.work"
NAMES = ("light_squeezenet", "light_shufflenet", "light_resnet50")
RAGGED = (17, 33, 65, 77, 127, 129, 193, 255, 257, 383, 509, 1001)
ALIGNED = (32, 64, 128, 256, 512, 1024)
PRODUCT = """@T.prim_func
def f(A: T.Buffer(({m}, {k}), "float32"), B: T.Buffer(({k}, {n}), "float32"), C: T.Buffer(({m}, {n}), "float32")):
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text, word):
    """A time that the program prints behind a word."""
    value, unit = re.search(rf"{word} ([\d.]+) (\S+?)(?:,|$)", text, re.MULTILINE).groups()
    return float(value) * UNITS[unit]


def run(program, model, inputs, target, threads, folder):
    """The time to import and compile a model, and the shortest of its runs."""
    command = [program, "run", model, "--target", target, "--time", "--output", f"{folder}/out.npz"]
    command += ["--inputs", inputs] if inputs else []
    command += ["--threads", str(threads)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return seconds(text, "compile"), seconds(text, "min")


def encoder(folder):
    """A transformer of 77 tokens, and its input; nothing without the packages that make it."""
    try:
        import numpy
        import onnx

        import synthetic
    except ImportError:
        return []
    net = synthetic.Net("encoder_77")
    x = net.input("x", [77, 256])
    for _ in range(4):
        x = synthetic.layer(net, x, 77, 256, 4)
    path, inputs = Path(folder) / "encoder_77.onnx", Path(folder) / "encoder_77.npz"
    onnx.save(net.model(x), path)
    numpy.savez(inputs, x=numpy.random.default_rng(0).standard_normal((77, 256)).astype("float32"))
    return [("encoder_77", path, inputs)]


def models(program, args, folder):
    all_models = [(n, MODELS / f"models/{n}.onnx", MODELS / f"cases/{n}-0/in.npz") for n in NAMES]
    for name, model, inputs in all_models + encoder(folder):
        if args.only not in name:
            continue
        if not (model.exists() and inputs.exists()):
            print(f"{name}: conformance/onnx/run.py prepare makes it")
            continue
        compiled, best = {}, {}
        for _ in range(args.rounds):
            for target in (args.target, "native"):
                made, time = run(program, model, inputs, target, args.threads, folder)
                compiled.setdefault(target, made)
                best[target] = min(best.get(target, time), time)
        own, native = best[args.target], best["native"]
        print(
            f"{name:20} {1e3 * own:9.2f} ms, processor {1e3 * native:9.2f} ms, ratio {own / native:5.2f}; "
            f"compiled in {compiled[args.target]:.1f} s, processor {compiled['native']:.1f} s",
            flush=True,
        )


def product(program, folder, size, target, rounds):
    """Times in microseconds of a product and of CLBlast's, and how far the results are apart."""
    source = Path(folder) / "product.py"
    source.write_text(PRODUCT.format(m=size, n=size, k=size))
    subprocess.run(
        [program, "compile", source, "--target", target, "-o", f"{folder}/product.cl"],
        check=True,
        capture_output=True,
    )
    binary = f"{folder}/product"
    sources = [HERE / "opencl.c", f"{folder}/product.c"]
    command = ["cc", "-O2", "-w", "-DCL_TARGET_OPENCL_VERSION=120", f"-I{folder}", *sources, "-o", binary, "-lclblast", "-lOpenCL", "-lm"]
    subprocess.run(command, check=True)
    shape = [str(size)] * 3
    out = subprocess.run([binary, folder, *shape, str(rounds)], check=True, capture_output=True, text=True)
    return [float(word) for word in out.stdout.split()[-3:]]


TINYGRAD = """
import sys, time
import numpy
from tinygrad import Device, Tensor, TinyJit
from tinygrad.nn.onnx import OnnxRunner

def shortest(call, rounds):
    times = []
    for _ in range(3 + rounds):
        start = time.perf_counter()
        call()
        Device[Device.DEFAULT].synchronize()
        times.append(time.perf_counter() - start)
    print(min(times))

if sys.argv[1] == "product":
    a, b = (Tensor(numpy.random.rand(int(sys.argv[2]), int(sys.argv[2])).astype("float32")).realize() for _ in "ab")
    product = TinyJit(lambda a, b: (a @ b).realize())
    shortest(lambda: product(a, b), 10)
else:
    runner = OnnxRunner(sys.argv[1])
    given = {k: Tensor(v).realize() for k, v in numpy.load(sys.argv[2]).items()}
    names = list(given)
    model = TinyJit(lambda *all: [v.realize() for v in runner(dict(zip(names, all))).values()])
    shortest(lambda: model(*given.values()), 5)
"""


def tinygrad(*arguments):
    """Seconds of a model or product with tinygrad; None where it is not there, or cannot run it."""
    environment = {**os.environ, "DEV": "CL"}
    command = [sys.executable, "-c", TINYGRAD, *map(str, arguments)]
    out = subprocess.run(command, capture_output=True, text=True, env=environment)
    return float(out.stdout.split()[-1]) if out.returncode == 0 else None


def against_tinygrad(program, args, folder):
    for name in NAMES:
        model, inputs = MODELS / f"models/{name}.onnx", MODELS / f"cases/{name}-0/in.npz"
        theirs = tinygrad(model, inputs) if args.only in name and inputs.exists() else None
        if theirs is not None:
            own = min(run(program, model, inputs, args.target, args.threads, folder)[1] for _ in range(args.rounds))
            print(f"{name:20} {1e3 * own:9.2f} ms, tinygrad {1e3 * theirs:9.2f} ms, ratio {own / theirs:6.3f}", flush=True)
    for size in (33, 257, 509, 1024) if has_clblast() else ():
        theirs = tinygrad("product", size) if args.only in f"product_{size}" else None
        if theirs is not None:
            own = product(program, folder, size, args.target, 8)[0] / 1e6
            print(f"product_{size:<12} {1e6 * own:9.1f} us, tinygrad {1e6 * theirs:9.1f} us, ratio {own / theirs:6.3f}", flush=True)


def has_clblast():
    probe = ["cc", "-E", "-xc", "-", "-o", "/dev/null"]
    return subprocess.run(probe, input=b"#include <clblast_c.h>\n", capture_output=True).returncode == 0


def products(program, args, folder):
    if not has_clblast():
        print("no CLBlast: products are left out")
        return
    for size in sorted(RAGGED + ALIGNED):
        if args.only not in f"product_{size}":
            continue
        own, theirs, far = product(program, folder, size, args.target, 20 if size < 512 else 8)
        print(
            f"product_{size:<12} {own:9.1f} us, CLBlast {theirs:12.1f} us, ratio {own / theirs:5.2f}; "
            f"differs by {far:.1e}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", help="the program (default: a release build)")
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--target", default="opencl", help="the device (default: the first one)")
    parser.add_argument("--threads", type=int, default=2, help="of the code for the processor (default: 2)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each model (default: 3)")
    args = parser.parse_args()
    program = args.binary
    if not program:
        subprocess.run(["cargo", "build", "--release", "-p", "tilewright-cli"], cwd=HERE.parent, check=True)
        program = HERE.parent / "target/release/tilewright"
    with tempfile.TemporaryDirectory() as folder:
        models(program, args, folder)
        products(program, args, folder)
        against_tinygrad(program, args, folder)


if __name__ == "__main__":
    sys.exit(main())
