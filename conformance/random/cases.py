"""Cases of each kind: what is generated, what becomes of it, and whether that is right."""

import collections
import random
import re
import shlex
from pathlib import Path

import numpy

import chains
import graphs
import oracle
import programs
import reduction
import schedules
import tool
import wide
from memory import ARBITRARY, UNWRITTEN, Unsupported
from structure import structure

# Sets of data on which a program and what became of it are compared.
DATA = 2
# Sums of floats in another order, where a schedule asks for it.
TOLERANCE = 1e-4


class Context:
    """One case while it is checked."""

    def __init__(self, program, timeout, kind, seed, target=None):
        self.program, self.timeout, self.kind, self.seed = program, timeout, kind, seed
        # Where programs run: a choice among targets must not change which programs there are.
        self.where = ["--target", target] if target else []
        self.rng = random.Random(f"{kind} {seed}")
        self.counts = collections.Counter()
        self.steps = collections.Counter()
        self.failures = []
        self.errors = []
        self.folder = None

    def count(self, what):
        self.counts[what] += 1

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def tool(self, *arguments):
        return tool.run(self.program, arguments, timeout=self.timeout)

    def fail(self, status, what, sort, message, text, recipe):
        """Notes an error of the compiler: `what` did it to the module `text`."""
        self.count(status)
        self.failures.append(
            {
                "sort": f"{status}: {what}: {sort}",
                "message": message,
                "kind": self.kind,
                "seed": self.seed,
                "text": text,
                "recipe": recipe,
            }
        )

    def result(self):
        return {
            "counts": self.counts,
            "steps": self.steps,
            "failures": self.failures,
            "errors": self.errors,
        }


class References:
    """A module on several sets of data; those on which it is illegal are left out."""

    def __init__(self, text, seed, name="main"):
        self.name = name
        self.module = oracle.Module(text)
        function = self.module.tensors[name]
        self.all = []
        for k in range(DATA):
            try:
                arrays = oracle.data(function, f"{seed} {k}")
                self.all.append(oracle.Reference(self.module, name, arrays))
            except oracle.Illegal:
                pass

    def failure(self, text, **options):
        module = oracle.Module(text)
        permissive = options.pop("permissive", False)
        for reference in self.all:
            reference.permissive |= permissive
            found = reference.failure(module, self.name, **options)
            if found:
                return found
        return None


def legal_program(c, **options):
    """A program that is legal on some data, printed by the tool, with its references."""
    for attempt in range(10):
        seed = f"{c.kind} {c.seed} {attempt}"
        text = programs.program(seed, **options)
        references = References(text, seed)
        if references.all:
            break
        c.count("illegal")
    else:
        return None
    c.count("generated")
    path = c.file("program.py", text)
    answer = c.tool("opt", path)
    if answer.status != "ok":
        recipe = {"arguments": ["opt", "{module}"], "seed": seed}
        if answer.status == "refused":
            c.count("refused")
            c.steps[("read", "refused")] += 1
        elif answer.status == "timed out":
            c.count("timed out")
        else:
            c.fail(answer.status, "read", answer.reason(), answer.err, text, recipe)
        return None
    found = references.failure(answer.out)
    if found:
        recipe = {"arguments": ["opt", "{module}"], "seed": seed}
        c.fail("wrong", "read", found.kind, found.message, text, recipe)
        return None
    return answer.out, references, seed


def check_passes(c):
    style = c.rng.choice(["any", "any", "guards"])
    made = legal_program(c, style=style)
    if made is None:
        return
    text, references, seed = made
    passes, settings = chains.chain(c.rng, style == "guards")
    options = [x for key, value in settings.items() for x in ("--pass-config", f"{key}={value}")]
    path = c.file("module.py", text)
    answer = c.tool("opt", path, "--pass", ",".join(passes), "--print-after-all", *options)
    before = text
    done = tool.stages(answer.out)
    for name, after in done:
        c.steps[(name, "accepted")] += 1
        recipe = {"arguments": pass_arguments(name, settings), "seed": seed}
        if judge(c, references, name, before, after, recipe):
            return
        before = after
    if answer.status != "ok":
        name = passes[len(done)] if len(done) < len(passes) else passes[-1]
        recipe = {"arguments": pass_arguments(name, settings), "seed": seed}
        ended(c, answer, name, before, recipe)


def judge(c, references, name, before, after, recipe, **options):
    """Compares one step; returns whether it ends the case."""
    if after == before:
        c.count("unchanged")
        return False
    c.count("changed")
    permissive = "T.undef(" in before
    found = references.failure(after, permissive=permissive, **options)
    if found:
        c.fail("wrong", name, found.kind, found.message, before, recipe)
        return True
    c.count("equal")
    return False


def ended(c, answer, name, before, recipe):
    """A run that did not reach its end."""
    if answer.status == "refused":
        c.count("refused")
        c.steps[(name, "refused")] += 1
    elif answer.status == "timed out":
        c.count("timed out")
    else:
        c.fail(answer.status, name, answer.reason(), answer.err, before, recipe)


def check_wide(c):
    """A few steps on a program that is too large to run; see `wide`."""
    text, shape = wide.program(c.rng)
    c.count("generated")
    for _ in range(4):
        block = next((b for b in structure(text).blocks if b.loops), None)
        if block is None:
            return
        primitive, script = wide.step(c.rng, block)
        path = c.file("module.py", text)
        answer = c.tool("opt", path, "--schedule", c.file("trace.py", script))
        arguments = ["opt", "{module}", "--schedule", "{trace}"]
        recipe = {"arguments": arguments, "trace": script, "seed": None}
        if answer.status != "ok":
            ended(c, answer, primitive, text, recipe)
            if answer.status != "refused":
                return
            continue
        c.steps[(primitive, "accepted")] += 1
        c.count("changed")
        found = wide.failure(answer.out, shape, c.seed)
        if found:
            c.fail("wrong", f"wide {primitive}", found.kind, found.message, text, recipe)
            return
        c.count("equal")
        text = answer.out
    path = c.file("module.py", text)
    arguments = ["opt", "{module}", "--pass", "lower_blocks,flatten_buffer,simplify"]
    answer = c.tool(*filled(arguments, {"module": path}))
    recipe = {"arguments": arguments, "seed": None}
    if answer.status != "ok":
        ended(c, answer, "flatten_buffer", text, recipe)
        return
    found = wide.failure(answer.out, shape, c.seed)
    if found:
        c.fail("wrong", "wide flatten_buffer", found.kind, found.message, text, recipe)


def check_schedules(c):
    if c.rng.random() < 0.1:
        check_wide(c)
        return
    style = c.rng.choice(["any", "any", "pipeline", "pipeline", "pipeline", "guards"])
    made = legal_program(c, blocks=True, assumptions=c.rng.random() < 0.3, style=style)
    if made is None:
        return
    text, references, seed = made
    layouts = {}
    accepted = 0
    for _ in range(12):
        shape = structure(text)
        step = schedules.Steps(c.rng, shape).step()
        if step is None or accepted == 6:
            return
        script = "\n".join(step.lines) + "\n"
        path = c.file("module.py", text)
        trace = c.file("trace.py", script)
        answer = c.tool("opt", path, "--schedule", trace)
        recipe = {
            "arguments": ["opt", "{module}", "--schedule", "{trace}"],
            "trace": script,
            "seed": seed,
        }
        if answer.status != "ok":
            ended(c, answer, step.primitive, text, recipe)
            if answer.status != "refused":
                return
            continue
        accepted += 1
        c.steps[(step.primitive, "accepted")] += 1
        after = answer.out
        position = None
        if step.layout and step.layout[0] in shape.parameters:
            name, function, pad = step.layout
            position = shape.parameters.index(name)
            now = oracle.Module(after).tensors["main"].parameters[position][2]
            chosen = layouts.setdefault(position, schedules.Layout([]))
            chosen.maps.append((function, now, pad))
            recipe["layouts"] = True
        if judge(
            c,
            references,
            step.primitive,
            text,
            after,
            recipe,
            layouts=layouts,
            tolerance=TOLERANCE,
            copies=True,
        ):
            return
        text = after


def legal_graph(c):
    """A graph function that is legal on some data, its module, and that data."""
    for attempt in range(20):
        seed = f"{c.kind} {c.seed} {attempt}"
        text = graphs.Graph(seed).build()
        if text is None:
            continue
        module = oracle.Module(text)
        sets = graph_data(module, seed)
        if sets:
            c.count("generated")
            return text, module, sets, seed
        c.count("illegal")
    return None


def check_graphs(c):
    """Chains of passes over a graph function and the functions that it calls."""
    made = legal_graph(c)
    if made is None:
        return
    text, before, sets, seed = made
    passes, settings = graphs.chain(c.rng)
    options = [x for key, value in settings.items() for x in ("--pass-config", f"{key}={value}")]
    path = c.file("module.py", text)
    answer = c.tool("opt", path, "--pass", ",".join(passes), "--print-after-all", *options)
    done = tool.stages(answer.out)
    last = text
    for name, after in done:
        c.steps[(name, "accepted")] += 1
        recipe = {"arguments": pass_arguments(name, settings), "seed": seed}
        c.count("unchanged" if after == last else "changed")
        found = graph_failure(before, sets, after, "T.undef(" in last)
        if found:
            c.fail("wrong", name, found.kind, found.message, last, recipe)
            return
        c.count("equal")
        last = after
    if answer.status != "ok":
        name = passes[min(len(done), len(passes) - 1)]
        ended(c, answer, name, last, {"arguments": pass_arguments(name, settings), "seed": seed})


def graph_data(module, seed):
    """Sets of arguments on which a graph function is legal."""
    found = []
    for k in range(DATA):
        try:
            arrays = oracle.graph_arguments(module, "main", f"{seed} {k}")
            if oracle.graph_failure(module, module, "main", arrays) is None:
                found.append(arrays)
        except oracle.Illegal:
            pass
    return found


def graph_failure(before, sets, text, permissive=False):
    after = oracle.Module(text)
    for arrays in sets:
        found = oracle.graph_failure(before, after, "main", arrays, permissive=permissive)
        if found:
            return found
    return None


def check_native_graph(c):
    """A graph function, run natively."""
    made = legal_graph(c)
    if made is None:
        return
    text, module, sets, seed = made
    inputs, output = c.folder / "in.npz", c.folder / "out.npz"
    node = module.graphs["main"]
    arrays = dict(zip([p.arg for p in node.args.args], sets[0]))
    numpy.savez(inputs, **arrays)
    arguments = ["run", "{module}", "--inputs", "{inputs}", "--output", "{output}", "--no-cache"]
    arguments += c.rng.choice([[], ["--no-fuse"], ["--threads", "1"], ["--layout", "nhwc"]]) + c.where
    files = {"module": c.file("module.py", text), "inputs": inputs, "output": output}
    answer = c.tool(*filled(arguments, files))
    recipe = {"arguments": arguments, "seed": seed, "arrays": arrays}
    if answer.status != "ok":
        ended(c, answer, "run", text, recipe)
        return
    c.steps[("run", "accepted")] += 1
    c.count("changed")
    with numpy.load(output) as results:
        new = dict(results)
    for name, (cells, dtype, shape) in oracle.graph_results(module, "main", sets[0]).items():
        if name not in new or new[name].shape != tuple(shape) or str(new[name].dtype) != dtype:
            found = f"there is no result {name} of {dtype}{tuple(shape)}: {sorted(new)}"
        else:
            found = oracle.difference(
                cells, oracle.cells_of(new[name], dtype), dtype, shape, TOLERANCE
            )
        if found:
            c.fail("wrong", "run graph", "value", name + found, text, recipe)
            return
    c.count("equal")


def check_programs(c):
    """Programs as they are read, lowered, and run natively."""
    if c.rng.random() < 0.2:
        check_native_graph(c)
        return
    made = legal_program(c)
    if made is None:
        return
    text, references, seed = made
    path = c.file("module.py", text)
    reference = references.all[0]
    function = references.module.tensors["main"]
    inputs = c.folder / "in.npz"
    arrays = dict(zip(function.names, reference.arrays))
    output = c.folder / "out.npz"
    options = ["--no-cache", "--threads", "1"]
    options += c.rng.choice([[], [], ["--no-schedule"], ["--opt-level", "0"], ["--threads", "2"]])
    if "--threads" in options[3:]:
        del options[1:3]
    arguments = ["run", "{module}", "--inputs", "{inputs}", "--output", "{output}", *options, *c.where]
    command = filled(arguments, {"module": path, "inputs": inputs, "output": output})
    numpy.savez(inputs, **arrays)
    answer = c.tool(*command)
    named = re.search(r"note: the inputs are: (.*)", answer.err)
    if answer.status == "refused" and named:
        # Those that the function writes without reading are no inputs.
        arrays = {name: arrays[name] for name in re.findall(r"`(\w+)`", named[1])}
        numpy.savez(inputs, **arrays)
        answer = c.tool(*command)
    recipe = {"arguments": arguments, "seed": seed, "arrays": arrays}
    if answer.status != "ok":
        ended(c, answer, "run", text, recipe)
        return
    c.steps[("run", "accepted")] += 1
    c.count("changed")
    try:
        reference.forget(references.module, "main", [n not in arrays for n in function.names])
    except oracle.Illegal:
        # Whether it reads what it did not write depends on data.
        c.count("unknown")
        return
    with numpy.load(output) as results:
        found = native_difference(results, function.names, arrays, reference)
    if found:
        c.fail("wrong", "run", "value", found, text, recipe)
        return
    c.count("equal")


def native_difference(results, names, given, reference):
    for name, old, array in zip(names, reference.cells, reference.arrays):
        if name not in results:
            continue
        new = results[name]
        if new.shape != array.shape or new.dtype != array.dtype:
            return f"{name} is {new.dtype}{new.shape}"
        cells = oracle.cells_of(new, str(new.dtype))
        # Cells that the function does not write keep what was given, or hold anything.
        kept = oracle.cells_of(given[name], str(new.dtype)) if name in given else None
        old = [
            x if x is not UNWRITTEN else kept[i] if kept else ARBITRARY for i, x in enumerate(old)
        ]
        wrong = oracle.difference(old, cells, str(new.dtype), array.shape, TOLERANCE)
        if wrong:
            return name + wrong
    return None


def pass_arguments(name, settings):
    """The arguments that run one pass with its own settings."""
    arguments = ["opt", "{module}", "--pass", name]
    for key, value in settings.items():
        if key.startswith(name + "."):
            arguments += ["--pass-config", f"{key}={value}"]
    return arguments


KINDS = {
    "programs": check_programs,
    "graphs": check_graphs,
    "passes": check_passes,
    "schedules": check_schedules,
}


def filled(arguments, files):
    """Arguments of a command with the files in the places of their names."""
    return [files[a[1:-1]] if a.startswith("{") else a for a in arguments]


def write(failure, output, program, timeout):
    """Writes a reproduction, after making it smaller."""
    name = "".join(ch if ch.isalnum() else "-" for ch in failure["sort"])[:80].strip("-")
    folder = Path(output) / f"{name}-{failure['seed']}"
    folder.mkdir(parents=True, exist_ok=True)
    text, message = failure["text"], failure["message"]
    try:
        text, message = reduction.reduce(failure, folder, program, timeout)
    except Unsupported:
        pass
    (folder / "module.py").write_text(text)
    recipe = failure["recipe"]
    if "trace" in recipe:
        (folder / "trace.py").write_text(recipe["trace"])
    names = {"module": "module.py", "trace": "trace.py", "inputs": "in.npz", "output": "out.npz"}
    arguments = filled(recipe["arguments"], names)
    if "arrays" in recipe:
        numpy.savez(folder / "in.npz", **recipe["arrays"])
    lines = [
        f"{failure['sort']}",
        f"kind {failure['kind']}, seed {failure['seed']}",
        shlex.join(["tilewright", *arguments]),
        message,
    ]
    (folder / "README.txt").write_text("\n".join(lines) + "\n")
