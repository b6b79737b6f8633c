#!/usr/bin/env python3
"""Whether `tilewright check` accepts a wrong certificate.

    certificates.py [--binary PROGRAM] [--seeds N] [--first SEED] [--mutations N]

Random schedules of random functions, over open and over fixed sizes, are written with `opt --certificate`. The file has to be
accepted, and to lead from the script before to the one after. Then it is changed in one place: a number, a name, an
operator, a line that is left out, doubled or exchanged with another one, a list without an item. A changed
file is refused, or its claim is still true: where a function in it is another one, both are run, by an evaluator of
trees that this script has, for several sizes and with random data. A file whose functions were changed must not
lead from the one script to the other. The checker must neither panic nor hang.
"""

import argparse
import collections
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12]
SECONDS = 30


def functions(choose):
    """A function, as a script, and the names of its blocks with the buffers that they write, and their rank."""
    size = choose.choice(["n", "n", str(choose.randint(2, 13))])
    head = "    n = T.int64()\n" if size == "n" else ""
    large = f"T.int64({size})" if size != "n" else "n"
    kind = choose.choice(["map", "chain", "sum", "window", "two", "pair"])

    def script(params, body):
        names = ", ".join(f"{p.lower()}: T.handle" for p in params)
        match = "".join(f"    {p} = T.match_buffer({p.lower()}, ({shape}), \"float32\")\n" for p, shape in params.items())
        return f"from tvm.script import tir as T\n@T.prim_func\ndef main({names}):\n{head}{match}{body}"

    def block(name, loops, reduce=(), init="", store=""):
        vs = [f"i{k}" for k in range(len(loops))]
        grid = ", ".join(loops)
        text = f"    for {', '.join(vs)} in T.grid({grid}):\n        with T.block(\"{name}\"):\n"
        for k, v in enumerate(vs):
            axis = "reduce" if k in reduce else "spatial"
            text += f"            v{k} = T.axis.{axis}({loops[k]}, {v})\n"
        if init:
            text += f"            with T.init():\n                {init}\n"
        return text + f"            {store}\n"

    factor = choose.randint(2, 5)
    if kind == "map":
        return script({"A": f"{large},", "B": f"{large},"}, block("B", [large], store=f"B[v0] = A[v0] * T.float32({factor})")), {"B": 1}
    if kind == "chain":
        body = f"    C = T.alloc_buffer(({large},), \"float32\")\n"
        body += block("C", [large], store=f"C[v0] = A[v0] + T.float32({factor})")
        body += block("B", [large], store="B[v0] = C[v0] * C[v0]")
        return script({"A": f"{large},", "B": f"{large},"}, body), {"C": 1, "B": 1}
    if kind == "sum":
        m = choose.randint(1, 5)
        body = block("B", [large, f"T.int64({m})"], {1}, "B[v0] = T.float32(0)", "B[v0] = B[v0] + A[v0, v1]")
        return script({"A": f"{large}, {m}", "B": f"{large},"}, body), {"B": 1}
    if kind == "window":
        w = choose.randint(2, 3)
        wide = f"{large} + {w - 1}" if size == "n" else str(int(size) + w - 1)
        body = block("B", [large], store="B[v0] = " + " + ".join(f"A[v0 + {k}]" for k in range(w)))
        return script({"A": f"{wide},", "B": f"{large},"}, body), {"B": 1}
    if kind == "two":
        m = choose.randint(2, 6)
        body = block("B", [large, f"T.int64({m})"], store=f"B[v0, v1] = A[v1, v0] - T.float32({factor})")
        return script({"A": f"{m}, {large}", "B": f"{large}, {m}"}, body), {"B": 2}
    body = block("B", [large], store="B[v0] = A[v0]") + block("C", [large], store=f"C[v0] = A[v0] * T.float32({factor})")
    return script({"A": f"{large},", "B": f"{large},", "C": f"{large},"}, body), {"B": 1, "C": 1}


def index_map(choose, rank):
    k, p = choose.choice([2, 3, 4, 8]), choose.choice([0, 0, 1, 2])
    if rank == 1:
        i = f"(i + {p})" if p else "i"
        return choose.choice([f"lambda i: [{i} // {k}, {i} % {k}]", f"lambda i: [{i} % {k}, {i} // {k}]", f"lambda i: [i + {p}]"])
    return choose.choice(["lambda i, j: [j, i]", f"lambda i, j: [i // {k}, j, i % {k}]", f"lambda i, j: [j, i // {k}, i % {k}]", f"lambda i, j: [i * 1, (j + {p}) // {k}, (j + {p}) % {k}]"])


def schedules(choose, blocks):
    """Steps, some of which may be refused."""
    steps = []
    for _ in range(choose.randint(1, 5)):
        block = choose.choice(list(blocks))
        get = f"sch.get_block('{block}')"
        kind = choose.choice(["layout", "layout", "split", "split", "reorder", "overcompute", "overcompute", "merge", "partition", "inline", "fuse", "read"])
        if kind == "layout":
            pad = choose.choice(["", "", ", pad_value=0.0", ", pad_value=T.undef()"])
            steps.append(f"sch.transform_layout('{block}', '{block}', {index_map(choose, blocks[block])}{pad})")
        elif kind == "split":
            steps.append(f"sch.split(sch.get_loops({get})[{choose.choice([0, 0, -1])}], [None, {choose.choice([2, 3, 4, 5, 8])}])")
        elif kind == "reorder":
            steps.append(f"sch.reorder(sch.get_loops({get})[1], sch.get_loops({get})[0])")
        elif kind == "fuse":
            steps.append(f"sch.fuse(sch.get_loops({get})[0], sch.get_loops({get})[1])")
        elif kind == "overcompute":
            steps.append(f"sch.remove_branching_through_overcompute(sch.get_loops({get})[{choose.choice([0, -1])}])")
        elif kind == "merge" and len(blocks) > 1:
            a, b = list(blocks)[:2]
            steps.append(f"sch.merge_loops(sch.get_loops(sch.get_block('{a}'))[0], sch.get_loops(sch.get_block('{b}'))[0])")
        elif kind == "partition":
            steps.append(f"sch.loop_partition(sch.get_loops({get})[0])")
        elif kind == "inline" and block == "C" and len(blocks) > 1:
            steps.append(f"sch.compute_inline({get})")
        elif kind == "read":
            steps.append(f"sch.cache_read({get}, 0, 'global')")
    return steps


# Trees.

TOKEN = re.compile(r"[()]|[^\s()]+")


def parse(text):
    stack = [[]]
    for token in TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return stack[0]


class Illegal(Exception):
    """The function does something that is not allowed."""


class Unknown(Exception):
    """Something that the evaluator does not know."""


UNDEF = object()
INFIX = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}


class Run:
    """A function that runs on cells by indices; cells that nothing wrote hold a value of their own."""

    def __init__(self, tree, sizes, given):
        self.vars, self.cells, self.extents, self.params, self.given = dict(sizes), {}, {}, [], given
        self.count = 0
        for item in tree[2:]:
            self.item(item)

    def item(self, item):
        kind = item[0]
        self.count += 1
        if self.count > 200_000:
            raise Unknown("too long")
        if kind == "sizes":
            return
        if kind in ("param", "alloc"):
            name = item[1]
            extents = [self.value(e) for e in item[3:]]
            if any(e < 0 for e in extents):
                raise Illegal("a negative extent")
            self.extents[name], self.cells[name] = extents, {}
            if kind == "param":
                self.params.append(name)
            return
        if kind == "result":
            self.params.append(item[1])
        elif kind == "for":
            low, high = self.value(item[2]), self.value(item[3])
            outside = self.vars.get(item[1])
            for i in range(low, high):
                self.vars[item[1]] = i
                for inner in item[4:]:
                    self.item(inner)
            self.vars[item[1]] = outside
        elif kind == "if":
            for inner in item[2] if self.value(item[1]) else item[3]:
                self.item(inner)
        elif kind == "store":
            at = self.place(item[1], item[2])
            self.cells[item[1]][at] = self.value(item[3])
        elif kind == "same":
            if self.value(item[1]) != self.value(item[2]):
                raise Illegal("other extents")
        else:
            raise Unknown(kind)

    def place(self, name, indices):
        at = tuple(self.value(i) for i in indices)
        extents = self.extents.get(name)
        if extents is None or len(at) != len(extents):
            raise Unknown("a rank")
        if any(i is UNDEF or not 0 <= i < n for i, n in zip(at, extents)):
            raise Illegal("out of range")
        return at

    def value(self, e):
        if isinstance(e, str):
            if e in self.vars:
                if self.vars[e] is None:
                    raise Unknown("a variable")
                return self.vars[e]
            try:
                return int(e)
            except ValueError:
                try:
                    return float(e)
                except ValueError:
                    raise Unknown(e) from None
        if len(e) == 3 and isinstance(e[1], str) and e[1] in INFIX and not (isinstance(e[0], str) and e[0] in ("load", "cast.float32", "undef")):
            a, b = self.value(e[0]), self.value(e[2])
            if a is UNDEF or b is UNDEF:
                return UNDEF
            if e[1] in ("//", "%") and b == 0:
                raise Illegal("division")
            return INFIX[e[1]](a, b)
        if len(e) == 3 and e[1] in ("and", "or"):
            a = self.value(e[0])
            return (a and self.value(e[2])) if e[1] == "and" else (a or self.value(e[2]))
        op = e[0]
        if op == "load":
            at = self.place(e[1], e[2:])
            found = self.cells[e[1]].get(at)
            return self.initial(e[1], at) if found is None else found
        if op in ("true", "false"):
            return op == "true"
        if op == "undef":
            return UNDEF
        if op == "if_then_else":
            return self.value(e[2] if self.value(e[1]) else e[3])
        args = [self.value(a) for a in e[1:]]
        if any(a is UNDEF for a in args):
            return UNDEF
        if op.startswith("cast.float"):
            return float(args[0])
        if op == "not":
            return not args[0]
        if op in ("min", "max"):
            return {"min": min, "max": max}[op](*args)
        if op == "select":
            return args[1] if args[0] else args[2]
        # What the checker knows nothing of may be any function.
        return float(random.Random(f"{op} {args}").randint(-9, 9))

    def initial(self, name, at):
        if name not in self.given:
            return UNDEF
        return self.given[name](at)

    def final(self, name, at):
        found = self.cells[name].get(at)
        return self.initial(name, at) if found is None else found


def indices(extents):
    all_ = [()]
    for n in extents:
        all_ = [at + (i,) for at in all_ for i in range(n)]
    return all_


def is_true(before, after, because, seed):
    """Whether the claim holds for the sizes that are tried, or as text, why that is not told: a function that is illegal
    at all of them may become anything."""
    layouts = {int(r[1]): r for r in because if isinstance(r, list) and r and r[0] == "layout"}
    sizes = next((item[1:] for item in before[2:] if item[0] == "sizes"), [])
    if next((item[1:] for item in after[2:] if item[0] == "sizes"), []) != sizes:
        return "unknown, other sizes"
    checked = False
    for n in SIZES if sizes else [0]:
        values = {name: n + k for k, name in enumerate(sizes)}
        names = [[i[1] for i in f[2:] if i[0] == "param"] for f in (before, after)]
        if len(names[0]) != len(names[1]):
            return "unknown, other parameters"

        def data(k, at):
            return float(random.Random(f"{seed} {n} {k} {at}").randint(-9, 9))

        def mapped(k, at, forward):
            layout = layouts.get(k)
            if layout is None:
                return at
            names, exprs = (layout[2], layout[3]) if forward else (layout[4], layout[5])
            run = Run(["function", "map"], {**values, **dict(zip(names, at))}, {})
            return tuple(run.value(e) for e in exprs)

        first = {name: (lambda at, k=k: data(k, at)) for k, name in enumerate(names[0])}
        try:
            left = Run(before, values, first)
        except Illegal:
            continue
        except Unknown as why:
            return f"unknown, {why}"

        def of_second(k, at):
            origin = mapped(k, at, False)
            inside = all(0 <= i < m for i, m in zip(origin, left.extents[names[0][k]]))
            if k in layouts and (not inside or mapped(k, origin, True) != at):
                return 1000.0 + data(k, at)
            return data(k, origin)

        second = {name: (lambda at, k=k: of_second(k, at)) for k, name in enumerate(names[1])}
        try:
            right = Run(after, values, second)
        except Illegal:
            return False
        except Unknown as why:
            return f"unknown, {why}"
        for k, (x, y) in enumerate(zip(left.params, right.params)):
            for at in indices(left.extents[x]):
                to = mapped(k, at, True)
                if any(not 0 <= i < m for i, m in zip(to, right.extents[y])):
                    return False
                a, b = left.final(x, at), right.final(y, to)
                if a is not UNDEF and a != b:
                    return False
        checked = True
    return True if checked else "true of no data"


# Changes.

def changed(text, choose):
    """The text with one change, and its kind."""
    lines = text.split("\n")
    kind = choose.choice(["number", "number", "number", "sign", "word", "operator", "drop", "double", "exchange", "item", "cut", "swap sides"])
    if kind in ("number", "sign", "word", "operator"):
        pattern = {"number": r"(?<![\w.'])\d+(?![\w.'])", "sign": r"-?(?<=:)-?\d+", "word": r"[A-Za-z_][\w']*", "operator": r" (\+|-|\*|//|%|<|<=|>|>=|==|!=|and|or) "}[kind]
        places = list(re.finditer(pattern, text))
        if not places:
            return None
        at = choose.choice(places)
        if kind == "number":
            new = str(max(0, int(at.group()) + choose.choice([-1, 1, 1, 2, 100])))
        elif kind == "sign":
            new = str(-int(at.group())) if choose.random() < 0.5 else str(int(at.group()) + 1)
        elif kind == "word":
            new = choose.choice(places).group()
        else:
            new = f" {choose.choice(['+', '-', '*', '//', '%', '<', '<=', '>', '>=', '==', '!=', 'and', 'or'])} "
        return text[: at.start()] + new + text[at.end() :], kind
    k = choose.randrange(1, len(lines))
    if kind == "drop":
        del lines[k]
    elif kind == "double":
        lines.insert(k, lines[k])
    elif kind == "exchange":
        j = choose.randrange(1, len(lines))
        lines[j], lines[k] = lines[k], lines[j]
    elif kind == "cut":
        return text[: choose.randrange(len(text))], kind
    elif kind == "item":
        places = list(re.finditer(r" \([^()]*\)", text))
        if not places:
            return None
        at = choose.choice(places)
        return text[: at.start()] + text[at.end() :], kind
    else:
        new = text.replace(" before ", " \0 ").replace(" after ", " before ").replace(" \0 ", " after ")
        return new, kind
    return "\n".join(lines), kind


def run(program, *arguments):
    try:
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "hang", ""
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=ROOT / "target/release/tilewright")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--mutations", type=int, default=40)
    arguments = parser.parse_args()
    program, counts, failures = arguments.binary, collections.Counter(), 0

    def fail(seed, what, text):
        nonlocal failures
        failures += 1
        print(f"seed {seed}: {what}", flush=True)
        Path(tempfile.gettempdir(), f"certificate_{seed}_{failures}.cert").write_text(text)

    with tempfile.TemporaryDirectory() as folder:
        script, steps, file, after = (Path(folder, n) for n in ("a.py", "s.py", "c.cert", "b.py"))
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            choose = random.Random(seed)
            text, blocks = functions(choose)
            script.write_text(text)
            # Steps that are refused are left out.
            kept = []
            for step in schedules(choose, blocks):
                steps.write_text("\n".join(kept + [step]) + "\n")
                if run(program, "opt", script, "--schedule", steps)[0] == 0:
                    kept.append(step)
            if not kept:
                counts["no steps"] += 1
                continue
            steps.write_text("\n".join(kept) + "\n")
            file.unlink(missing_ok=True)
            code, said = run(program, "opt", script, "--schedule", steps, "--certificate", file)
            if code == 3:
                counts["no certificate"] += 1
                print(f"seed {seed}: {said.strip().splitlines()[-1][:160] if said.strip() else ''} {kept}", flush=True)
                continue
            if code != 0:
                fail(seed, f"opt ends with {code}: {said[:200]}", text)
                continue
            counts["derivations"] += 1
            after.write_text(said)
            certificate = file.read_text()
            if run(program, "check", file, "--before", script, "--after", after)[0] != 0:
                fail(seed, "a certificate is refused", certificate)
                continue
            heads = [t for t in parse(certificate) if isinstance(t, list)]
            for k in range(0, len(heads) - 3, 4):
                truth = is_true(heads[k], heads[k + 1], heads[k + 2][1:], seed)
                counts[f"rewrites that are {truth}"] += 1
                if truth is False:
                    fail(seed, "an accepted rewrite is wrong", certificate)
            for k in range(arguments.mutations):
                made = changed(certificate, random.Random(f"{seed} {k}"))
                if made is None or made[0] == certificate:
                    continue
                new, kind = made
                counts["changed"] += 1
                file.write_text(new)
                code, said = run(program, "check", file)
                if code not in (0, 1, 2):
                    fail(seed, f"the checker ends with {code} after {kind}: {said[:200]}", new)
                if code != 0:
                    counts["refused"] += 1
                    continue
                counts["accepted"] += 1
                trees = [t for t in parse(new) if isinstance(t, list)]
                is_same = [t for t in trees if t[0] == "function"] == [t for t in heads if t[0] == "function"]
                if is_same:
                    counts["accepted, functions unchanged"] += 1
                    continue
                if run(program, "check", file, "--before", script, "--after", after)[0] == 0:
                    # Only what stands between the first and the last one may be another one.
                    counts["accepted, leads from one script to the other"] += 1
                for at, t in enumerate(trees):
                    if t[0] == "because":
                        truth = is_true(trees[at - 2], trees[at - 1], t[1:], seed)
                        counts[f"accepted with other functions: {truth}"] += 1
                        if truth is False:
                            fail(seed, f"a wrong rewrite is accepted after {kind}", new)
            # Another number in the script before, or in the one after.
            file.write_text(certificate)
            wrong = Path(folder, "wrong.py")
            for k, right in enumerate([text, said] * 3):
                # The domain of an iteration variable is no part of a tree: a loop has its extent.
                found = re.finditer(r"(?<=float32\()\d+(?=[.)])|(?<=\+ )\d+|(?<=int64\()\d+", right)
                lines = right.split("\n")
                places = [at for at in found if "T.axis." not in lines[right.count("\n", 0, at.start())]]
                if not places:
                    continue
                at = random.Random(f"{seed} {k}").choice(places)
                wrong.write_text(right[: at.start()] + str(int(at.group()) + 1) + right[at.end() :])
                ends = [script, after]
                ends[k % 2] = wrong
                code, _ = run(program, "check", file, "--before", ends[0], "--after", ends[1])
                counts[f"another number in a script: {code}"] += 1
                if code == 0:
                    fail(seed, "it leads from or to another script", certificate + "\n" + wrong.read_text())
    for name, count in sorted(counts.items()):
        print(f"{count:7}  {name}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
