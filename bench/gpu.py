#!/usr/bin/env python3
"""Times products on a GPU of NVIDIA against cuBLAS, which PyTorch calls.

    bench/gpu.py --binary PROGRAM                all of it
    bench/gpu.py --only bf16                     the lines whose name contains this
    bench/gpu.py --sizes 512 509 4096x1000x77    other products (M, or MxNxK)

Ours is the sum over a run's calls of the time that the GPU took for each (`run --profile`, the median of many
runs); theirs is the median of twenty times between two events. Both lie in memory of the GPU; f32 is not rounded to
tf32. Each result is compared with a product in float64: the error is that of the whole matrix, relative to it.

It needs a GPU, and `torch`, `numpy` and `onnx` in the Python that runs it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import torch
from onnx import TensorProto, helper

SIZES = ("512", "1024", "2048", "4096", "509", "1001", "2043", "4093", "77x3072x768", "4096x4096x77")
TYPES = {
    "f32": (TensorProto.FLOAT, torch.float32, 1e-5),
    "f16": (TensorProto.FLOAT16, torch.float16, 2e-3),
    "bf16": (TensorProto.BFLOAT16, torch.bfloat16, 1e-2),
}


def product(m, n, k, kind, path):
    """A model that multiplies: [m, k] by [k, n]."""
    values = [helper.make_tensor_value_info(name, kind, shape) for name, shape in
              (("a", [m, k]), ("b", [k, n]), ("c", [m, n]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["c"])], "product", values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def ours(program, target, model, inputs, folder, seconds):
    """Seconds of a run on the GPU, and the result; the reason where there is none."""
    profile, output = folder / "profile.json", folder / "out.npz"
    command = [program, "run", model, "--target", target, f"--profile={profile}", "--seconds", str(seconds)]
    command += ["--output", output] + (["--inputs", inputs] if inputs else [])
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()[-400:]
    steps = json.loads(profile.read_text())["steps"]
    return sum(step["median"] for step in steps) * 1e-9, numpy.load(output)["c"]


def theirs(a, b):
    """Seconds of a product by PyTorch, and its result."""
    for _ in range(3):
        result = a @ b
    times = []
    for _ in range(20):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        result = a @ b
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after) * 1e-3)
    return sorted(times)[len(times) // 2], result


def error(result, exact):
    return float(torch.linalg.norm(result.double() - exact) / torch.linalg.norm(exact))


def line(args, name, size, folder):
    m, n, k = size
    kind, dtype, allowed = TYPES[name]
    generator = torch.Generator(device="cuda").manual_seed(m + n + k)
    a, b = (torch.randn(s, generator=generator, device="cuda").to(dtype) for s in ((m, k), (k, n)))
    model, inputs = folder / "product.onnx", folder / "in.npz"
    product(m, n, k, kind, model)
    if dtype == torch.bfloat16:
        # A file of numpy holds no bfloat16: random numbers of the program's own, and no comparison.
        inputs = None
    else:
        numpy.savez(inputs, a=a.cpu().numpy(), b=b.cpu().numpy())
    seconds, result = ours(args.binary, args.target, model, inputs, folder, args.seconds)
    other, expected = theirs(a, b)
    head = f"{name:5} {m:5} x {n:5} x {k:5}  cuBLAS {other * 1e6:9.1f} us {2e-12 * m * n * k / other:7.1f} TFLOP/s"
    if seconds is None:
        print(f"{head}  ours: {result}", flush=True)
        return False
    wrong = 0.0
    if inputs is not None:
        wrong = error(torch.from_numpy(result).cuda(), a.double() @ b.double())
    print(
        f"{head}  ours {seconds * 1e6:9.1f} us {2e-12 * m * n * k / seconds:7.1f} TFLOP/s"
        f"  ratio {seconds / other:6.2f}  error {wrong:.1e}{'' if wrong <= allowed else '  WRONG'}",
        flush=True,
    )
    return wrong <= allowed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="tilewright", help="the program (default: `tilewright`)")
    parser.add_argument("--target", default="cuda", help="the GPU, as `run --target` takes it")
    parser.add_argument("--only", default="", help="types whose name contains this")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="M|MxNxK")
    parser.add_argument("--seconds", type=float, default=0.5, help="for how long each is measured")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    well = True
    with tempfile.TemporaryDirectory() as folder:
        for name in TYPES:
            for text in args.sizes if args.only in name else ():
                numbers = [int(n) for n in text.split("x")]
                well &= line(args, name, numbers * 3 if len(numbers) == 1 else numbers, Path(folder))
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
