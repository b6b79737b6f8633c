"""The models of the outside check, and inputs for them.

* the nine "light" models of the `onnx` package, with random weights (`randomize.py`),
  and one of them again with its weights in a file of their own;
* magika's model (which kind of file do these bytes come from?);
* rapidocr's text direction classifier;
* seven that are built here, with recurrence and integers (`built.py`).
"""

import hashlib
import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

import built
import environment
import randomize

EXTERNAL = "light_squeezenet"  # small, so that a second copy costs little


@dataclass
class Case:
    """A model with one set of inputs."""

    name: str
    path: Path
    inputs: dict
    dims: dict = field(default_factory=dict)  # said with --dim as well
    note: str = ""  # what is special about it

    def about(self):
        """The sizes of the inputs, and the note."""
        shapes = ["x".join(map(str, value.shape)) for value in self.inputs.values()]
        return ", ".join([*shapes, self.note] if self.note else shapes)


def package_folder(name):
    """Where a package lies, without importing it (its own imports may be missing)."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(f"the package {name} is not installed")
    return Path(found.submodule_search_locations[0])


def light_sources():
    """The light models as they come with the `onnx` package."""
    return sorted((package_folder("onnx") / "backend/test/data/light").glob("*.onnx"))


def prepared(source, external=False):
    """The light model with random weights; made now unless an earlier run made it."""
    name = source.stem + ("_external" if external else "")
    target = environment.WORK / "models" / f"{name}.onnx"
    note = target.with_suffix(".json")
    made_from = hashlib.sha256()
    for path in (source, Path(randomize.__file__)):
        made_from.update(path.read_bytes())
    made_from = made_from.hexdigest()
    if target.is_file() and note.is_file() and json.loads(note.read_text())["from"] == made_from:
        return target
    print(f"random weights for {name}", file=sys.stderr)
    measures = randomize.randomize(source, target, external)
    note.write_text(json.dumps({"from": made_from, **measures}, indent=2) + "\n")
    return target


def magika_row(content):
    """What magika feeds its model: 1024 bytes of the start, 1024 of the end, 256 as padding."""
    content = content.strip()
    start, end = np.full(1024, 256, np.int32), np.full(1024, 256, np.int32)
    head = np.frombuffer(content[:1024], np.uint8)
    tail = np.frombuffer(content[-1024:], np.uint8)
    start[: len(head)] = head
    end[1024 - len(tail) :] = tail
    return np.concatenate([start, end])


def magika_samples():
    """A program, a short text and something like a picture."""
    program = "\n".join(
        f"def scale_{i}(values, factor={i}):\n    return [factor * v for v in values]\n"
        for i in range(40)
    ).encode()
    note = json.dumps({"name": "sample", "sizes": [65, 77, 509]}).encode()
    noise = np.random.default_rng(77).integers(0, 256, 3000, np.uint8).tobytes()
    picture = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x41\x00\x00\x00\x65" + noise
    return np.stack([magika_row(content) for content in (program, note, picture)])


def text_line(batch, width):
    """Something like lines of dark strokes on bright paper, from -1 to 1."""
    rng = np.random.default_rng([162, batch, width])
    paper = np.full((batch, 3, 48, width), 0.8)
    for n in range(batch):
        for x in range(3, width - 8, 11):
            y, height, thick = rng.integers(6, 20), rng.integers(8, 22), rng.integers(1, 4)
            paper[n, :, y : y + height, x : x + thick] = -0.9
            paper[n, :, y : y + thick, x : x + 7] = -0.8
    return np.clip(paper + 0.05 * rng.standard_normal(paper.shape), -1, 1).astype(np.float32)


def builders():
    """Name to a function that gives the cases of that model."""

    def light(source, external=False):
        def build():
            path = prepared(source, external)
            model = onnx.load(path, load_external_data=False)
            inputs = {
                name: randomize.image(shape, source.stem)
                for name, shape in randomize.graph_inputs(model).items()
            }
            note = "weights in another file" if external else ""
            return [Case(source.stem, path, inputs, note=note)]

        return build

    def magika():
        path = package_folder("magika") / "models/standard_v3_3/model.onnx"
        rows = magika_samples()
        return [
            Case("magika", path, {"bytes": rows[:1]}),
            Case("magika", path, {"bytes": rows}, {"unk__214": 3}),
        ]

    def cls():
        path = package_folder("rapidocr_onnxruntime") / "models"
        path /= "ch_ppocr_mobile_v2.0_cls_infer.onnx"
        return [
            Case("cls", path, {"x": text_line(1, 192)}),
            Case("cls", path, {"x": text_line(2, 192)}, {"x.0": 2}),
            Case("cls", path, {"x": text_line(1, 175)}),
        ]

    found = {source.stem: light(source) for source in light_sources()}
    for source in light_sources():
        if source.stem == EXTERNAL:
            found[f"{EXTERNAL}_external"] = light(source, external=True)

    def made(name, build):
        def make():
            model, inputs = build()
            path = environment.WORK / "models" / f"{name}.onnx"
            path.parent.mkdir(parents=True, exist_ok=True)
            onnx.save(model, path)
            return [Case(name, path, inputs)]

        return make

    found |= {name: made(name, build) for name, build in built.MODELS.items()}
    return {**found, "magika": magika, "cls": cls}


def cases(only=""):
    """The cases of all models whose name contains `only`, made one after the other."""
    for name, build in builders().items():
        if only in name:
            yield from build()
