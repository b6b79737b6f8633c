"""Random tensor functions.

A program is a few stages over small buffers: pointwise, reductions that commute or do not, updates
that read what they wrote, guards, gathers and scatters, divisors from data, padding. Sizes are
ragged, sometimes 0 or 1. Not every text is a legal program; the driver keeps those that the
evaluator runs.
"""

import random

INTEGERS = ["int32", "int32", "int32", "int64", "int8", "uint8", "int16"]
FLOATS = ["float32", "float32", "float32", "float64"]


class Buffer:
    """A buffer of the program; `full` says that all of it is written."""

    def __init__(self, name, shape, dtype, full=True):
        self.name, self.shape, self.dtype, self.full = name, tuple(shape), dtype, full

    @property
    def integer(self):
        return not self.dtype.startswith("float") and self.dtype != "bool"


def constant(rng, dtype):
    if dtype == "bool":
        return rng.choice(["T.bool(True)", "T.bool(False)"])
    if dtype.startswith("float"):
        value = rng.choice([0.0, 0.0, 1.0, 1.0, 2.0, -1.0, 0.5, -3.0, 4.0, 0.25])
        return f"T.{dtype}({value})"
    value = rng.choice([0, 0, 1, 1, 2, 3, 5, 7, 100, -1, -2])
    if dtype.startswith("u"):
        value = abs(value)
    return f"T.{dtype}({value})"


class Program:
    """Builds the text of one function."""

    def __init__(self, seed, *, blocks=None, assumptions=True):
        self.rng = rng = random.Random(seed)
        self.lines = []
        self.parameters = []
        self.allocations = []
        self.fresh = {}
        # Whether computations stand in blocks; schedules need them.
        self.blocks = rng.random() < 0.75 if blocks is None else blocks
        self.assumptions = assumptions
        self.dtype = rng.choice(
            ["int32", "int32", "float32", "float32", rng.choice(INTEGERS + FLOATS)]
        )
        self.zero = rng.random() < 0.06
        # The type of loop variables; where it is narrow, extents come near its end.
        self.index_type = "int32" if rng.random() < 0.8 else rng.choice(["int64", "int8", "uint8"])
        if self.index_type in ("int8", "uint8"):
            self.wide = rng.choice([60, 100, 126, 127])
        else:
            self.wide = None
        self.readable = []
        self.loops = []

    def name(self, prefix):
        self.fresh[prefix] = self.fresh.get(prefix, -1) + 1
        return f"{prefix}{self.fresh[prefix]}"

    def extent(self):
        sizes = [1, 2, 3, 4, 4, 5, 6, 7, 8, 10]
        if self.zero and self.rng.random() < 0.4:
            return 0
        return self.rng.choice(sizes)

    def number(self, n):
        """A bound as text."""
        return str(n) if self.index_type == "int32" else f"T.{self.index_type}({n})"

    def shape(self, rank=None):
        rank = rank or self.rng.choice([1, 1, 2, 2, 2, 3])
        if self.wide and rank == 1 and self.rng.random() < 0.5:
            return [self.wide]
        while True:
            shape = [self.extent() for _ in range(rank)]
            product = 1
            for n in shape:
                product *= n
            if product <= 150:
                return shape

    def parameter(self, shape, dtype, prefix="A"):
        b = Buffer(self.name(prefix), shape, dtype)
        self.parameters.append(b)
        return b

    def target(self, shape, dtype, last):
        if last or self.rng.random() < 0.25:
            b = Buffer(self.name("O"), shape, dtype, full=False)
            self.parameters.append(b)
        else:
            b = Buffer(self.name("M"), shape, dtype, full=False)
            self.allocations.append(b)
        return b

    # Expressions over variables [(name, extent)].

    def index(self, extent, variables, data=True):
        """An index below `extent`, or one that usually is."""
        rng = self.rng
        kind = rng.random()
        fitting = [(v, n) for v, n in variables if n <= extent]
        if kind < 0.6 and fitting:
            v, n = rng.choice(fitting)
            return rng.choice([v, v, v, f"{extent - 1} - {v}"]) if extent else v
        if not variables:
            return str(rng.randrange(max(extent, 1)))
        v, n = rng.choice(variables)
        if kind < 0.7:
            return str(rng.randrange(max(extent, 1)))
        if kind < 0.8 and extent:
            return f"({v} + {rng.randrange(4)}) % {extent}"
        if kind < 0.88 and extent:
            return f"T.min({v} + {rng.randrange(2)}, {extent - 1})"
        integers = [b for b in self.readable if b.dtype == "int32"]
        if data and integers and extent and kind < 0.96:
            load = self.load(rng.choice(integers), variables, data=False)
            if load:
                return rng.choice([f"{load} % {extent}", f"T.max(T.min({load}, {extent - 1}), 0)"])
        if len(variables) > 1 and rng.random() < 0.5:
            (v, n), (w, m) = rng.sample(variables, 2)
            if n * m <= extent:
                return f"{v} * {m} + {w}"
            if n + m - 1 <= extent:
                return f"{v} + {w}"
        return f"{v} // {max(1, -(-n // max(extent, 1)))}"

    def load(self, buffer, variables, data=True):
        if not buffer.shape or 0 in buffer.shape:
            return None
        # The natural index first: the variables in their order, where they fit.
        if self.rng.random() < 0.5:
            left, natural = list(variables), []
            for n in buffer.shape:
                found = next((x for x in left if x[1] == n), None)
                if found is None:
                    break
                left.remove(found)
                natural.append(found[0])
            if len(natural) == len(buffer.shape):
                return f"{buffer.name}[{', '.join(natural)}]"
        at = [self.index(n, variables, data) for n in buffer.shape]
        return f"{buffer.name}[{', '.join(at)}]"

    def leaf(self, dtype, variables):
        rng = self.rng
        candidates = [b for b in self.readable if b.dtype == dtype]
        if candidates and rng.random() < 0.75:
            load = self.load(rng.choice(candidates), variables)
            if load:
                return load
        if rng.random() < 0.2 and variables and dtype != "bool":
            v = rng.choice(variables)[0]
            return v if dtype == self.index_type else f'T.Cast("{dtype}", {v})'
        others = [b for b in self.readable if b.dtype != dtype]
        if others and rng.random() < 0.3 and dtype != "bool":
            load = self.load(rng.choice(others), variables)
            if load:
                return f'T.Cast("{dtype}", {load})'
        return constant(rng, dtype)

    def value(self, dtype, variables, depth=2):
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            return self.leaf(dtype, variables)
        a = self.value(dtype, variables, depth - 1)
        b = self.value(dtype, variables, depth - 1)
        if dtype == "bool":
            return f"({a} {rng.choice(['and', 'or'])} {b})"
        kind = rng.random()
        if kind < 0.5:
            return f"({a} {rng.choice(['+', '-', '*'])} {b})"
        if kind < 0.62:
            return f"T.{rng.choice(['min', 'max'])}({a}, {b})"
        if kind < 0.78:
            c = self.condition(variables)
            return f"T.{rng.choice(['if_then_else', 'if_then_else', 'Select'])}({c}, {a}, {b})"
        if dtype.startswith("float"):
            if kind < 0.84:
                return f"T.{rng.choice(['abs', 'floor', 'sqrt', 'exp', 'tanh'])}({a})"
            if kind < 0.9:
                return f"({a} / T.{dtype}({rng.choice([2.0, 4.0, -0.5])}))"
            return f"({a} * {b})"
        division = rng.choice(["{} // {}", "{} % {}", "T.truncdiv({}, {})", "T.truncmod({}, {})"])
        if kind < 0.9:
            return "(" + division.format(a, f"T.{dtype}({rng.choice([2, 3, 4, 7])})") + ")"
        if kind < 0.96:
            safe = division.format(a, f"T.max({b}, T.{dtype}(1))")
            return f"({safe})"
        divided = division.format(a, b)
        return f"T.if_then_else({b} != T.{dtype}(0), {divided}, {constant(rng, dtype)})"

    def condition(self, variables, data=True):
        rng = self.rng
        if not variables:
            return f"{self.leaf('int32', [])} > 0"
        v, n = rng.choice(variables)
        kind = rng.random()
        c = rng.randrange(max(n, 1))
        if kind < 0.4:
            return f"{v} {rng.choice(['<', '<', '>=', '==', '!=', '<=', '>'])} {c}"
        if kind < 0.55 and len(variables) > 1:
            (v, n), (w, m) = rng.sample(variables, 2)
            total = max(n * m, 1)
            if self.wide and total > 100:
                return f"{v} < {c}"
            return f"{v} * {m} + {w} {rng.choice(['<', '>='])} {rng.randrange(total)}"
        if kind < 0.63 and len(variables) > 1:
            (v, _), (w, _) = rng.sample(variables, 2)
            return f"{v} {rng.choice(['<', '<=', '!='])} {w}"
        if kind < 0.72:
            return f"{v} % {rng.choice([2, 3, 4])} {rng.choice(['==', '<'])} {rng.randrange(1, 3)}"
        if kind < 0.82:
            operator = rng.choice(["and", "or"])
            a, b = self.condition(variables, data), self.condition(variables, data)
            return f"({a} {operator} {b})"
        candidates = [b for b in self.readable if b.integer or b.dtype.startswith("float")]
        if data and candidates:
            b = rng.choice(candidates)
            load = self.load(b, variables)
            if load and b.integer and rng.random() < 0.3:
                # Sums of data, which wrap.
                other = self.load(rng.choice([x for x in candidates if x.dtype == b.dtype]), variables)
                by = f"{rng.choice(['+', '-', '*'])} {constant(rng, b.dtype)}"
                return f"{load} {by} {rng.choice(['<', '>', '=='])} {other or load}"
            if load:
                return f"{load} {rng.choice(['<', '>', '==', '!='])} {constant(rng, b.dtype)}"
        return f"{v} < {c + 1}"

    # Statements.

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def nest(self, depth, extents, kinds, name=None, ragged=True):
        """Opens loops, and a block if the program has blocks.

        Returns the depth inside, and the variables of the statement with their extents.
        """
        rng = self.rng
        loops = [self.name("i") for _ in extents]
        block = name is not None and self.blocks
        if block and "R" not in kinds and rng.random() < 0.1:
            # The block holds the loops; its condition may leave them.
            self.emit(depth, f'with T.block("{name}"):')
            depth, block, ragged = depth + 1, False, False
        split = None
        if block and ragged and extents and rng.random() < 0.15:
            split = rng.randrange(len(extents))
        factor = rng.choice([2, 3, 4])
        plain = [(v, self.number(n)) for v, n in zip(loops, extents)]
        parallel = "S" in kinds and rng.random() < 0.08
        if split is None and len(plain) > 1 and rng.random() < 0.6 and not parallel:
            self.emit(
                depth,
                f"for {', '.join(loops)} in T.grid({', '.join(n for _, n in plain)}):",
            )
            depth += 1
        else:
            for k, (v, n) in enumerate(plain):
                if k == split:
                    outer = -(-extents[k] // factor)
                    bounds = f"{self.number(outer)}, {self.number(factor)}"
                    self.emit(depth, f"for {v}o, {v}i in T.grid({bounds}):")
                else:
                    marked = parallel and kinds[k] == "S"
                    kind = rng.choice(["T.parallel", "T.vectorized"]) if marked else "range"
                    parallel = parallel and not marked
                    self.emit(depth, f"for {v} in {kind}({n}):")
                depth += 1
        if not block:
            self.loops = []
            return depth, list(zip(loops, extents))
        # What a predicate may speak of.
        self.loops = [(v, n) for k, (v, n) in enumerate(zip(loops, extents)) if k != split]
        self.emit(depth, f'with T.block("{name}"):')
        depth += 1
        variables, where = [], []
        if split is None and len(loops) > 1 and rng.random() < 0.6:
            names = [f"v{v}" for v in loops]
            self.emit(
                depth, f"{', '.join(names)} = T.axis.remap(\"{kinds}\", [{', '.join(loops)}])"
            )
            variables = list(zip(names, extents))
        else:
            for k, (v, n) in enumerate(zip(loops, extents)):
                axis = {"S": "spatial", "R": "reduce"}[kinds[k]]
                value = v
                if k == split:
                    value = f"{v}o * {factor} + {v}i"
                    where.append(f"{value} < {n}")
                self.emit(depth, f"v{v} = T.axis.{axis}({self.number(n)}, {value})")
                variables.append((f"v{v}", n))
        if where:
            self.emit(depth, f"T.where({' and '.join(where)})")
        return depth, variables

    def at(self, buffer, variables):
        return f"{buffer.name}[{', '.join(v for v, _ in variables)}]"

    def fill(self, depth, b, value=None):
        d, vs = self.nest(depth, b.shape, "S" * len(b.shape), self.name(b.name + "_fill"))
        self.emit(d, f"{self.at(b, vs)} = {value or constant(self.rng, b.dtype)}")
        b.full = True

    def pointwise(self, depth, last):
        shape, dtype = self.shape(), self.dtype
        b = self.target(shape, dtype, last)
        d, vs = self.nest(depth, shape, "S" * len(shape), b.name)
        at = self.at(b, vs)
        kind = self.rng.random()
        if kind < 0.15:
            self.emit(d, f"if {self.condition(vs)}:")
            self.emit(d + 1, f"{at} = {self.value(dtype, vs)}")
            self.emit(d, "else:")
            self.emit(d + 1, f"{at} = {self.value(dtype, vs)}")
        elif kind < 0.25:
            x = self.name("x")
            self.emit(d, f"{x}: T.{dtype} = {self.value(dtype, vs)}")
            self.emit(d, f"{at} = {x} * {x} + {self.leaf(dtype, vs)}")
        else:
            self.emit(d, f"{at} = {self.value(dtype, vs, 3)}")
        b.full = True
        return b

    def reduction(self, depth, last):
        rng, dtype = self.rng, self.dtype
        spatial, reduced = self.shape(rng.choice([1, 1, 2])), self.shape(rng.choice([1, 1, 2]))
        while len(reduced) * len(spatial) and _product(spatial) * _product(reduced) > 400:
            spatial, reduced = self.shape(1), self.shape(1)
        b = self.target(spatial, dtype, last)
        kinds = ["S"] * len(spatial) + ["R"] * len(reduced)
        order = list(range(len(kinds)))
        if rng.random() < 0.3:
            rng.shuffle(order)
        extents = spatial + reduced
        d, vs = self.nest(
            depth, [extents[k] for k in order], "".join(kinds[k] for k in order), b.name
        )
        back = [vs[order.index(k)] for k in range(len(kinds))]
        at = self.at(b, back[: len(spatial)])
        init = constant(rng, dtype)
        value = self.value(dtype, vs, 2)
        update = rng.choice(
            [
                "{at} + {v}",
                "{at} + {v}",
                "{at} + {v}",
                "T.max({at}, {v})",
                "T.min({at}, {v})",
                "{at} * {v}",
                "{at} * {two} + {v}",
                "{at} - {v}",
                "{v} - {at}",
                "T.if_then_else({c}, {v}, {at})",
            ]
        ).format(
            at=at,
            v=value,
            two=f"T.{dtype}({2.0 if dtype.startswith('f') else 2})",
            c=self.condition(vs),
        )
        guard = rng.random() < 0.1
        if self.blocks:
            self.emit(d, "with T.init():")
            self.emit(d + 1, f"{at} = {init}")
        else:
            first = " and ".join(f"{v} == 0" for v, _ in back[len(spatial) :])
            self.emit(d, f"if {first}:")
            self.emit(d + 1, f"{at} = {init}")
        if guard:
            self.emit(d, f"if {self.condition(vs)}:")
        self.emit(d + guard, f"{at} = {update}")
        b.full = 0 not in reduced
        return b

    def running(self, depth, last):
        """An update that reads what other iterations wrote."""
        rng, dtype = self.rng, self.dtype
        shape = self.shape(rng.choice([1, 2]))
        b = self.target(shape, dtype, last)
        if rng.random() < 0.8:
            self.fill(depth, b)
        d, vs = self.nest(depth, shape, "S" * len(shape), self.name(b.name + "_run"), ragged=False)
        at = self.at(b, vs)
        shifted, guards = [], []
        for v, n in vs:
            step = rng.choice([0, -1, -1, 1, -2])
            if step == 0:
                shifted.append(v)
            elif rng.random() < 0.3 and n:
                shifted.append(f"({v} + {step % n}) % {n}")
            else:
                shifted.append(f"{v} + {step}" if step > 0 else f"{v} - {-step}")
                guards.append(f"{v} + {step} < {n}" if step > 0 else f"{v} >= {-step}")
        other = f"{b.name}[{', '.join(shifted)}]"
        value = self.value(dtype, vs, 1)
        combined = rng.choice(["{o} + {v}", "{at} + {o}", "{at} + {o} * {v}", "{o} - {v}"])
        combined = combined.format(o=other, v=value, at=at)
        guard = " and ".join(guards)
        if not guard:
            self.emit(d, f"{at} = {combined}")
        elif rng.random() < 0.5:
            self.emit(d, f"if {guard}:")
            self.emit(d + 1, f"{at} = {combined}")
        else:
            self.emit(d, f"{at} = T.if_then_else({guard}, {combined}, {value})")
        b.full = True
        return b

    def guarded(self, depth, last):
        """A store under a guard, before or after the whole buffer is written."""
        rng, dtype = self.rng, self.dtype
        shape = self.shape()
        b = self.target(shape, dtype, last)
        first = rng.random() < 0.6
        if first:
            self.fill(depth, b, None if rng.random() < 0.7 else 'T.undef(dtype="%s")' % dtype)
        for _ in range(rng.choice([1, 1, 2])):
            name = self.name(b.name + "_part")
            d, vs = self.nest(depth, shape, "S" * len(shape), name)
            if (
                self.blocks
                and self.loops
                and rng.random() < 0.15
                and "T.where" not in self.lines[-1]
            ):
                self.emit(d, f"T.where({self.condition(self.loops, data=False)})")
                self.emit(d, f"{self.at(b, vs)} = {self.value(dtype, vs)}")
            else:
                self.emit(d, f"if {self.condition(vs)}:")
                self.emit(d + 1, f"{self.at(b, vs)} = {self.value(dtype, vs)}")
        if not first or rng.random() < 0.4:
            # What is overwritten later, perhaps by something that reads it.
            d, vs = self.nest(depth, shape, "S" * len(shape), self.name(b.name + "_after"))
            at = self.at(b, vs)
            kind = rng.random()
            text = self.value(dtype, vs, 1)
            if first and kind < 0.3:
                text = f"{at} + {text}"
            elif first and kind < 0.5 and b.integer:
                text = f"{text} // T.if_then_else({at} == T.{dtype}(0), T.{dtype}(1), {at})"
            elif first and kind < 0.7 and b.dtype == "int32":
                sources = [x for x in self.readable if x.dtype == dtype and len(x.shape) == 1]
                if sources and sources[0].shape[0]:
                    text = f"{sources[0].name}[T.max(T.min({at}, {sources[0].shape[0] - 1}), 0)]"
            if rng.random() < 0.4:
                self.emit(d, f"if {self.condition(vs)}:")
                d += 1
            self.emit(d, f"{at} = {text}")
        b.full = True
        return b

    def held(self, depth, last):
        """A block around loops that write a buffer, and some of its cells again."""
        if not self.blocks:
            return self.guarded(depth, last)
        rng, dtype = self.rng, self.dtype
        shape = [rng.choice([3, 4, 6, 8]), rng.choice([2, 4, 5])][: rng.choice([1, 2, 2])]
        b = self.target(shape, dtype, last)
        self.emit(depth, f'with T.block("{self.name(b.name + "_held")}"):')
        self.blocks = False
        self.fill(depth + 1, b, self.leaf(dtype, []) if rng.random() < 0.5 else None)
        for _ in range(rng.choice([1, 2, 2])):
            d, vs = self.nest(depth + 1, shape, "S" * len(shape))
            (v, n), (w, m) = vs[0], vs[-1]
            guard = rng.choice(
                [
                    f"{v} < {rng.randrange(1, n)}",
                    f"{v} >= {rng.randrange(1, n)}",
                    f"{v} == {rng.randrange(n)} and {w} < {rng.randrange(1, m + 1)}",
                    self.condition(vs, data=False),
                    self.condition(vs, data=False),
                ]
            )
            self.emit(d, f"if {guard}:")
            self.emit(d + 1, f"{self.at(b, vs)} = {self.value(dtype, vs, 1)}")
        self.blocks = True
        return b

    def uses_of_guarded(self, depth, last):
        """Stores under guards to cells that an update of theirs uses, as an index, a divisor, in a
        condition or as a term, before they are perhaps written again."""
        rng, dtype = self.rng, self.dtype if self.dtype in ("int32", "int64") else "int32"
        n = rng.choice([4, 6, 8, 10])
        c = rng.randrange(1, n)
        shape = [n] if rng.random() < 0.6 else [n, rng.choice([2, 3])]
        b = self.target(shape, dtype, last)
        table = Buffer(self.name("A"), [rng.choice([c, c, n, c + 1])], dtype)
        self.parameters.append(table)
        if rng.random() < 0.85:
            self.fill(depth, b, f"T.{dtype}({rng.choice([0, 1, 1, 2])})")
        below = rng.random() < 0.7  # which side of the cut is written first
        sides = [f"< {c}", f">= {c}"] if below else [f">= {c}", f"< {c}"]

        def stage(name, guard, text):
            d, vs = self.nest(
                depth, shape, "S" * len(shape), self.name(f"{b.name}_{name}"), ragged=False
            )
            v = vs[0][0]
            as_type = v if dtype == self.index_type else f'T.Cast("{dtype}", {v})'
            at = self.at(b, vs)
            if guard:
                self.emit(d, f"if {v} {guard}:")
                d += 1
            self.emit(d, f"{at} = {text.format(at=at, v=as_type, i=v)}")

        values = ["{v}", f"{{v}} - {c}", f"{c} - {{v}}", f"{{v}} * T.{dtype}(1000000)", "{v} + 1"]
        stage("part", sides[0], rng.choice(values + [constant(rng, dtype)]))
        uses = [f"{table.name}[{{at}}]"] * 3 + [
            f"T.{dtype}(12) // {{at}}",
            f"T.truncmod(T.{dtype}(12), {{at}})",
            "T.if_then_else({at} > 0, {at}, {v})",
            "{at} + {v}",
            f"{{at}} * T.{dtype}(0)",
            f"{{at}} + {table.name}[{{at}}]",
        ]
        stage("use", rng.choice(["", "", sides[0]]), rng.choice(uses))
        if rng.random() < 0.8:
            stage(
                "after",
                rng.choice(["", sides[1], sides[1]]),
                rng.choice(["{v}", "{at} + 1", "T.%s(3)" % dtype]),
            )
        b.full = True
        return b

    def scatter(self, depth, last):
        """Stores at places that data say."""
        rng, dtype = self.rng, self.dtype
        shape = [max(1, self.extent())]
        sources = [x for x in self.readable if x.dtype == "int32" and 0 not in x.shape]
        if not sources:
            return self.pointwise(depth, last)
        source = rng.choice(sources)
        b = self.target(shape, dtype, last)
        self.fill(depth, b)
        kinds = "".join(rng.choice("SR") for _ in source.shape)
        d, vs = self.nest(depth, source.shape, kinds, self.name(b.name + "_put"), ragged=False)
        at = f"{b.name}[T.max(T.min({self.at(source, vs)}, {shape[0] - 1}), 0)]"
        value = self.value(dtype, vs, 1)
        text = rng.choice(["{v}", "{at} + {v}", "T.max({at}, {v})"]).format(at=at, v=value)
        self.emit(d, f"{at} = {text}")
        return b

    def padded(self, depth, last, source=None):
        """A padded copy and a window over it."""
        rng, dtype = self.rng, self.dtype
        sources = [x for x in self.readable if x.dtype == dtype and 0 not in x.shape]
        sources = [source] if source else [x for x in sources if len(x.shape) <= 2]
        if not sources:
            return self.pointwise(depth, last)
        source = rng.choice(sources)
        if self.wide and source.shape[-1] > 50:
            return self.pointwise(depth, last)  # the padding might not fit the type of the loops
        low, high, window = rng.randrange(3), rng.randrange(3), rng.choice([1, 2, 3])
        shape = list(source.shape)
        shape[-1] += low + high
        p = Buffer(self.name("P"), shape, dtype)
        self.allocations.append(p)
        d, vs = self.nest(depth, shape, "S" * len(shape), p.name)
        v = vs[-1][0]
        inside = [f"{v} >= {low}"] * (low > 0) + [f"{v} < {low + source.shape[-1]}"] * (high > 0)
        at = [x for x, _ in vs[:-1]] + [f"{v} - {low}" if low else v]
        load = f"{source.name}[{', '.join(at)}]"
        outside = constant(rng, dtype) if rng.random() < 0.8 else f'T.undef(dtype="{dtype}")'
        text = f"T.if_then_else({' and '.join(inside)}, {load}, {outside})" if inside else load
        self.emit(d, f"{self.at(p, vs)} = {text}")
        out = shape[:-1] + [shape[-1] - window + 1]
        if out[-1] <= 0:
            window, out = 1, shape
        b = self.target(out, dtype, last)
        kinds = "S" * len(out) + "R"
        d, vs = self.nest(depth, out + [window], kinds, b.name)
        target = self.at(b, vs[:-1])
        at = [x for x, _ in vs[:-2]] + [f"{vs[-2][0]} + {vs[-1][0]}"]
        load = f"{p.name}[{', '.join(at)}]"
        if self.blocks:
            self.emit(d, "with T.init():")
        else:
            self.emit(d, f"if {vs[-1][0]} == 0:")
        self.emit(d + 1, f"{target} = {constant(rng, dtype)}")
        if rng.random() < 0.5:
            load = f"{load} * {self.leaf(dtype, vs)}"
        update = rng.choice(["{t} + {v}", "{t} + {v}", "T.max({t}, {v})"])
        self.emit(d, f"{target} = {update.format(t=target, v=load)}")
        b.full = True
        return b

    def assumed(self, depth):
        """An assumption about the padding of an argument."""
        rng = self.rng
        candidates = [p for p in self.parameters if p.name.startswith("A") and 0 not in p.shape]
        if not candidates:
            return
        b = rng.choice(candidates)
        d, vs = self.nest(depth, b.shape, "S" * len(b.shape), self.name("assume"), ragged=False)
        v, n = vs[-1]
        value = constant(rng, b.dtype) if rng.random() < 0.7 else f'T.undef(dtype="{b.dtype}")'
        self.emit(d, f"T.assume({v} < {rng.randrange(n + 1)} or {self.at(b, vs)} == {value})")

    def pipeline(self):
        """Stages that each read what the one before wrote, in the shapes that schedules move."""
        rng, dtype = self.rng, self.dtype
        shape = self.shape(rng.choice([1, 2, 2, 3]))
        self.readable.append(self.parameter(shape, dtype))
        if rng.random() < 0.5:
            self.readable.append(self.parameter(self.shape(), dtype))
        stages = rng.choice([2, 2, 3, 4])
        latest = self.readable[0]
        for k in range(stages):
            last = k + 1 == stages
            shape = list(latest.shape)
            kind = rng.random()
            if kind < 0.3 and 0 not in shape:
                latest = self.padded(1, last, latest)
                self.readable.append(latest)
                continue
            if kind < 0.5 and len(shape) > 1:
                b = self.target(shape[:-1], dtype, last)
                d, vs = self.nest(1, shape, "S" * (len(shape) - 1) + "R", b.name)
                at = self.at(b, vs[:-1])
                value = self.at(latest, vs)
                if rng.random() < 0.5:
                    value = f"{value} * {self.leaf(dtype, vs)}"
                self.emit(d, "with T.init():")
                self.emit(d + 1, f"{at} = {constant(rng, dtype)}")
                update = ["{a} + {v}", "{a} + {v}", "T.max({a}, {v})", "{v} - {a}"]
                self.emit(d, f"{at} = {rng.choice(update).format(a=at, v=value)}")
            else:
                b = self.target(shape, dtype, last)
                d, vs = self.nest(1, shape, "S" * len(shape), b.name)
                value = self.at(latest, vs)
                other = self.value(dtype, vs, 1)
                forms = ["{v} + {o}", "T.max({v}, {o})", "{v} * {o}", "{v}"]
                forms += ["T.if_then_else({c}, {v}, {o})"]
                text = rng.choice(forms).format(v=value, o=other, c=self.condition(vs))
                if rng.random() < 0.12:
                    self.emit(d, f"{self.at(b, vs)} = {other}")
                    self.emit(d, f"if {self.condition(vs)}:")
                    d += 1
                self.emit(d, f"{self.at(b, vs)} = {text}")
            b.full = True
            self.readable.append(b)
            latest = b
        return self.text()

    def build(self, guards=False):
        rng = self.rng
        for _ in range(rng.choice([1, 1, 2, 3])):
            dtype = (
                self.dtype
                if rng.random() < 0.6
                else rng.choice(["int32", "float32", "int8", "bool"])
            )
            self.readable.append(self.parameter(self.shape(), dtype))
        if rng.random() < 0.3:
            self.readable.append(self.parameter([max(1, self.extent())], "int32"))
        depth = 1
        if self.assumptions and rng.random() < 0.2:
            self.assumed(depth)
        stages = rng.choice([1, 1, 2, 2, 3, 4])
        makers = [
            self.pointwise,
            self.pointwise,
            self.reduction,
            self.reduction,
            self.running,
            self.guarded,
            self.guarded,
            self.held,
            self.uses_of_guarded,
            self.scatter,
            self.padded,
        ]
        if guards:
            makers = [self.guarded, self.held, self.uses_of_guarded, self.uses_of_guarded]
        for k in range(stages):
            b = rng.choice(makers)(depth, k + 1 == stages)
            if b.full:
                self.readable.append(b)
        return self.text()

    def text(self):
        def shape(b):
            return "(" + "".join(f"{n}, " for n in b.shape).strip() + ")"

        header = ", ".join(f'{b.name}: T.Buffer({shape(b)}, "{b.dtype}")' for b in self.parameters)
        lines = ["@T.prim_func", f"def main({header}):"]
        for b in self.allocations:
            lines.append(f'    {b.name} = T.alloc_buffer({shape(b)}, "{b.dtype}")')
        return "\n".join(lines + self.lines) + "\n"


def _product(items):
    product = 1
    for n in items:
        product *= n
    return product


def program(seed, *, style="any", **options):
    """The text of a program; its style is `any`, `pipeline` or `guards`."""
    p = Program(seed, **options)
    return p.pipeline() if style == "pipeline" else p.build(style == "guards")
