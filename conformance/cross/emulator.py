"""A model on another machine: compiled for it, called from C, and run by an emulator.

    emulator.py TARGET TILEWRIGHT run MODEL --inputs FILE --output FILE [OPTIONS]

is what `tilewright run` is on this machine, so that scripts which call `tilewright` can test code for the
other one: they are given a program that calls this (`Emulated.wrapper`). Other commands go to `tilewright`
itself.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

#: Types in C, as headers say them.
TYPES = {
    "float": "float32",
    "double": "float64",
    "bool (a byte, 0 or 1)": "bool",
    "float16 (the bits, as uint16_t)": "float16",
    **{f"{kind}int{bits}_t": f"{kind}int{bits}" for kind in ["", "u"] for bits in [8, 16, 32, 64]},
}

PORT = re.compile(r"/\* (input|output) \d+: `([^`]*)`: ([^\[/]*?) ?((?:\[\d+\])*) \*/")


@dataclass
class Target:
    """A machine, and what compiles for it and runs for it here."""

    name: str
    triple: str
    gcc: str
    qemu: str
    options: list = field(default_factory=list)  # of the compilation
    cpu: str = ""  # of the emulator

    def missing(self):
        """The programs that are not on this machine."""
        return [tool for tool in (self.gcc, self.qemu) if shutil.which(tool) is None]

    def sysroot(self):
        return Path("/usr") / self.gcc.removesuffix("-gcc")


ARM = ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc", "qemu-aarch64")
RISCV = ("riscv64-unknown-linux-gnu", "riscv64-linux-gnu-gcc", "qemu-riscv64")


def vectors(bits):
    """A RISC-V with vectors of so many bits."""
    return f"rv64,v=true,vlen={bits},vext_spec=v1.0"


TARGETS = {
    target.name: target
    for target in [
        Target("aarch64", *ARM),
        Target("aarch64-i8mm", *ARM, ["--cpu", "neoverse-n2"], "max"),
        Target("aarch64-sve256", *ARM, ["--cpu", "neoverse-v1"], "max,sve-max-vq=2"),
        Target("aarch64-sve512", *ARM, ["--features=+sve512b"], "max,sve-max-vq=4"),
        Target("riscv64", *RISCV),
        Target("riscv64-v", *RISCV, ["--features=+v,+zvl256b"], vectors(256)),
        # The least length is what code may count on.
        Target("riscv64-v-longer", *RISCV, ["--features=+v"], vectors(512)),
    ]
}


#: What an emulator says that breaks on a legal instruction: qemu 7.2 does on conversions of vectors of floats
#: to integers.
BROKEN = re.compile(r"^qemu-\w+: .*: Assertion `.*' failed", re.MULTILINE)


class Failed(Exception):
    """A step that went wrong, with its exit code."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def step(what, command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode != 0:
        if BROKEN.search(done.stderr):
            raise Failed(f"error: the emulator fails\n{done.stderr}", 2)
        # What `tilewright` refuses, its caller expects as it says it.
        raise Failed(done.stderr if what == "compile" else f"{what}: {done.stderr}", done.returncode)
    return done.stdout


def main_function(inputs, outputs):
    """A program in C that reads inputs from its standard input and writes outputs to a file."""
    sizes = lambda ports: ", ".join(str(p.bytes()) for p in ports) or "0"  # noqa: E731
    return f"""#include <stdio.h>
#include <stdlib.h>
#include "model.h"

static const size_t input_bytes[] = {{{sizes(inputs)}}}, output_bytes[] = {{{sizes(outputs)}}};

/* Never of no bytes. */
static void *memory(size_t bytes) {{
    void *found = NULL;
    return posix_memalign(&found, 64, bytes + 64) == 0 ? found : NULL;
}}

int main(int count, char **names) {{
    void *inputs[{len(inputs)} + 1], *outputs[{len(outputs)} + 1];
    for (int k = 0; k < {len(inputs)}; k++) {{
        inputs[k] = memory(input_bytes[k]);
        if (fread(inputs[k], 1, input_bytes[k], stdin) != input_bytes[k]) return 97;
    }}
    for (int k = 0; k < {len(outputs)}; k++) outputs[k] = memory(output_bytes[k]);
    int result = model_run((const void *const *)inputs, outputs, NULL);
    if (result != 0) {{
        const char *message = model_message(result);
        fprintf(stderr, "error: %s\\n", message != NULL ? message : "no memory");
        return 2;
    }}
    FILE *file = count > 1 ? fopen(names[1], "wb") : NULL;
    if (file == NULL) return 98;
    for (int k = 0; k < {len(outputs)}; k++) {{
        if (fwrite(outputs[k], 1, output_bytes[k], file) != output_bytes[k]) return 99;
    }}
    return fclose(file);
}}
"""


@dataclass
class Port:
    name: str
    dtype: str
    shape: tuple

    def bytes(self):
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


def ports(header):
    """Inputs and outputs, as a header says them."""
    found = {"input": [], "output": []}
    for way, name, kind, extents in PORT.findall(header):
        shape = tuple(int(n) for n in re.findall(r"\d+", extents))
        found[way].append(Port(name, TYPES[kind.strip()], shape))
    return found["input"], found["output"]


class Emulated:
    """`tilewright` for another machine."""

    def __init__(self, tilewright, target):
        self.tilewright, self.target = Path(tilewright), target

    def run(self, model, arrays, options=(), form="so"):
        """The outputs of a model for arrays by name; `form` is so or a."""
        target = self.target
        with tempfile.TemporaryDirectory(prefix="tilewright-cross-") as folder:
            folder = Path(folder)
            given = []
            if arrays:
                np.savez(folder / "in.npz", **arrays)
                given = ["--inputs", folder / "in.npz"]
            library = folder / f"libmodel.{form}"
            machine = ["--target", target.triple, *target.options]
            command = [self.tilewright, "compile", model, "-o", library, "--name", "model"]
            step("compile", [*command, *machine, *given, *options])
            header = library.with_suffix(".h").read_text()
            (folder / "model.h").write_text(header)
            inputs, outputs = ports(header)
            (folder / "main.c").write_text(main_function(inputs, outputs))
            names = [port.name for port in inputs]
            if not set(arrays) <= set(names):
                # As `tilewright run` says it.
                listed = ", ".join(f"`{name}`" for name in names)
                raise Failed(f"error: not all of these are inputs\nnote: the inputs are: {listed}\n", 2)
            linked = ["-static"] if form == "a" else ["-Wl,-rpath," + str(folder)]
            command = [target.gcc, "-O1", "main.c", library, *linked, "-lm", "-o", "main"]
            step(target.gcc, command, cwd=folder)
            data = b"".join(np.ascontiguousarray(arrays[p.name]).tobytes() for p in inputs)
            (folder / "in.bin").write_bytes(data)
            cpu = ["-cpu", target.cpu] if target.cpu else []
            command = [target.qemu, *cpu, "-L", target.sysroot(), "main", "out.bin"]
            with (folder / "in.bin").open("rb") as stdin:
                step(target.qemu, command, cwd=folder, stdin=stdin)
            found, rest = {}, (folder / "out.bin").read_bytes()
            for port in outputs:
                part, rest = rest[: port.bytes()], rest[port.bytes() :]
                found[port.name] = np.frombuffer(part, port.dtype).reshape(port.shape)
            return found

    def wrapper(self, path):
        """Writes a program that takes the arguments of `tilewright`."""
        command = [sys.executable, __file__, self.target.name, self.tilewright]
        text = "#!/bin/sh\nexec " + shlex.join(map(str, command)) + ' "$@"\n'
        path.write_text(text)
        path.chmod(0o755)
        return path


def main():
    target, tilewright, *arguments = sys.argv[1:]
    emulated = Emulated(tilewright, TARGETS[target])
    if arguments[0] != "run":
        os.execv(tilewright, [tilewright, *arguments])
    options = arguments[2:]
    value = {}
    # Threads are this machine's; the rest says how code is made.
    for name in ["--inputs", "--output", "--threads"]:
        if name in options:
            at = options.index(name)
            value[name] = options[at + 1]
            del options[at : at + 2]
    with np.load(value["--inputs"]) as archive:
        arrays = dict(archive)
    # Both forms of libraries, by the text of the module.
    form = ["so", "a"][zlib.crc32(Path(arguments[1]).read_bytes()) % 2]
    try:
        found = emulated.run(arguments[1], arrays, options, form)
    except Failed as failed:
        sys.stderr.write(str(failed))
        # A signal is not this process's.
        sys.exit(failed.code if failed.code >= 0 else 70)
    np.savez(value["--output"], **found)


if __name__ == "__main__":
    main()
