"""Random graph functions whose calls pad, crop, transpose, pack and compute.

The functions are written in the ways that the layout passes look for: layout conversions as calls
of their own, or as stages marked `preproc` and `postproc` inside of a function.
"""

import random


class Graph:
    """Builds the text of a module with a graph function `main`."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.dtype = self.rng.choice(["int32", "float32", "float32"])
        self.functions = []
        self.lines = []
        self.values = []  # (name, shape)
        self.count = 0
        self.known = {}
        # Functions by their text, so that equal ones are called several times.

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def number(self, v):
        return f"T.{self.dtype}({float(v) if self.dtype.startswith('float') else v})"

    def constant(self):
        return self.number(self.rng.choice([0, 0, 0, 1, 2, -1]))

    def function(self, prefix, inputs, output, body, allocations=()):
        """Adds a tensor function `body(names of inputs, name of output)`."""
        names = [chr(ord("A") + k) for k in range(len(inputs))]
        params = [*zip(names, inputs), ("Z", output)]
        header = ", ".join(f'{n}: T.Buffer({tuple(s)}, "{self.dtype}")' for n, s in params)
        lines = [
            f'        {n} = T.alloc_buffer({tuple(s)}, "{self.dtype}")' for n, s in allocations
        ]
        lines += ["        " + line for line in body]
        key = (header, tuple(lines))
        if key not in self.known:
            name = self.name(prefix)
            text = ["    @T.prim_func", f"    def {name}({header}):", *lines]
            self.functions.append("\n".join(text))
            self.known[key] = name
        return self.known[key]

    def loops(self, shape, block, kinds=None, attribute=None):
        """The head of a nest with one block; the names of its variables."""
        names = [f"i{k}" for k in range(len(shape))]
        axes = [f"v{k}" for k in range(len(shape))]
        if len(shape) > 1:
            head = [f"for {', '.join(names)} in T.grid({', '.join(map(str, shape))}):"]
        else:
            head = [f"for i0 in range({shape[0]}):"]
        head.append(f'    with T.block("{block}"):')
        for k, (v, i) in enumerate(zip(axes, names)):
            kind = "reduce" if kinds and kinds[k] == "R" else "spatial"
            head.append(f"        {v} = T.axis.{kind}({shape[k]}, {i})")
        if attribute:
            head.append(f"        T.block_attr({attribute})")
        return head, axes

    # Conversions: (shape after, body).

    def conversion(self, shape, source="A", target="Z", attribute=None, block="convert"):
        """A random layout conversion of a value of this shape."""
        rng = self.rng
        kind = rng.choice(
            ["pad", "pad", "pack", "pack", "crop", "transpose", "split", "join", "shift"]
        )
        if kind in ("crop",) and shape[-1] < 2 or kind in ("transpose", "join") and len(shape) < 2:
            kind = "pad"
        n = shape[-1]
        undef = f'T.undef(dtype="{self.dtype}")'
        fill = self.constant() if rng.random() < 0.85 else undef
        if kind == "pad":
            low, high = rng.choice([(0, 2), (1, 1), (2, 0), (0, 1), (1, 3)])
            after = [*shape[:-1], n + low + high]
            head, v = self.loops(after, block, attribute=attribute)
            at = ", ".join([*v[:-1], f"{v[-1]} - {low}" if low else v[-1]])
            test = " and ".join(
                [f"{low} <= {v[-1]}"] * (low > 0) + [f"{v[-1]} < {low + n}"] * (high > 0)
            )
            value = f"T.if_then_else({test}, {source}[{at}], {fill})"
        elif kind == "crop":
            low = rng.randrange(2)
            high = rng.randrange(0, n - low)
            after = [*shape[:-1], n - low - high]
            head, v = self.loops(after, block, attribute=attribute)
            at = ", ".join([*v[:-1], f"{v[-1]} + {low}" if low else v[-1]])
            value = f"{source}[{at}]"
        elif kind == "transpose":
            order = list(range(len(shape)))
            rng.shuffle(order)
            after = [shape[k] for k in order]
            head, v = self.loops(after, block, attribute=attribute)
            at = ", ".join(v[order.index(k)] for k in range(len(shape)))
            value = f"{source}[{at}]"
        elif kind in ("pack", "split"):
            factor = rng.choice([2, 3, 4])
            outer = -(-n // factor)
            after = [*shape[:-1], outer, factor]
            if rng.random() < 0.3:
                after = [outer, *shape[:-1], factor]
            head, v = self.loops(after, block, attribute=attribute)
            front = after[0] == outer and len(shape) > 1 and after[:-2] != list(shape[:-1])
            o = v[0] if front else v[-2]
            rest = v[1:-1] if front else v[:-2]
            flat = f"{o} * {factor} + {v[-1]}"
            at = ", ".join([*rest, flat])
            value = f"{source}[{at}]"
            if outer * factor > n:
                value = f"T.if_then_else({flat} < {n}, {value}, {fill})"
        elif kind == "join":
            m = shape[-2]
            after = [*shape[:-2], m * n]
            head, v = self.loops(after, block, attribute=attribute)
            at = ", ".join([*v[:-1], f"{v[-1]} // {n}", f"{v[-1]} % {n}"])
            value = f"{source}[{at}]"
        else:
            after = list(shape)
            k = rng.randrange(1, 4)
            head, v = self.loops(after, block, attribute=attribute)
            at = ", ".join([*v[:-1], f"({v[-1]} + {k}) % {n}"])
            value = f"{source}[{at}]"
        if len(after) > 4 or _product(after) > 200:
            return (
                self.conversion([n], source, target, attribute, block) if len(shape) == 1 else None
            )
        return after, [*head, f"        {target}[{', '.join(v)}] = {value}"]

    def inverse(self, shape, before):
        """From a padded shape back to what was there, or another conversion."""
        return self.conversion(shape)

    def expression(self, load):
        rng = self.rng
        c = self.constant()
        return rng.choice(
            [
                f"{load} + {c}",
                f"{load} * {self.number(2)}",
                f"{load} * {c}",
                f"T.max({load}, {self.number(0)})",
                f"{load} - {load}",
                f"{self.number(0)} - {load}",
                f"T.if_then_else({load} > {self.number(1)}, {load}, {c})",
                f"{load}",
                f"T.min({load}, {self.number(3)}) * {load}",
            ]
        )

    def pointwise(self, shape):
        head, v = self.loops(shape, "compute")
        load = f"A[{', '.join(v)}]"
        return list(shape), [*head, f"        Z[{', '.join(v)}] = {self.expression(load)}"]

    def indexed(self, shape):
        """A pointwise function that depends on where it is."""
        head, v = self.loops(shape, "compute")
        load = f"A[{', '.join(v)}]"
        e = f'T.Cast("{self.dtype}", {v[-1]})' if self.dtype != "int32" else v[-1]
        return list(shape), [*head, f"        Z[{', '.join(v)}] = {load} + {e}"]

    def reduction(self, shape):
        rng = self.rng
        n = shape[-1]
        kinds = "S" * (len(shape) - 1) + "R"
        body_shape = shape if len(shape) > 1 else [1, n]
        kinds = kinds if len(shape) > 1 else "SR"
        head, v = self.loops(body_shape, "reduce", kinds)
        target = f"Z[{', '.join(v[:-1])}]"
        load = f"A[{', '.join(v if len(shape) > 1 else v[1:])}]"
        init, update = rng.choice(
            [
                (0, f"{target} + {load}"),
                (0, f"{target} + {load} * {load}"),
                (0, f"T.max({target}, {load})"),
                (-3, f"T.max({target}, {load})"),
                (1, f"{target} + {load} * {self.constant()}"),
                (0, f"{target} * {self.number(2)} + {load}"),
            ]
        )
        return list(body_shape[:-1]), [
            *head,
            "        with T.init():",
            f"            {target} = {self.number(init)}",
            f"        {target} = {update}",
        ]

    def window(self, shape):
        n, k = shape[-1], self.rng.choice([2, 3])
        if n < k:
            return None
        after = [*shape[:-1], n - k + 1]
        head, v = self.loops([*after, k], "window", "S" * len(after) + "R")
        target = f"Z[{', '.join(v[:-1])}]"
        load = f"A[{', '.join([*v[:-2], f'{v[-2]} + {v[-1]}'])}]"
        return after, [
            *head,
            "        with T.init():",
            f"            {target} = {self.number(0)}",
            f"        {target} = {target} + {load}",
        ]

    def call(self, prefix, made, inputs):
        """Binds a call of a function that `made` describes; returns the value."""
        if made is None:
            return None
        after, body, *allocations = made
        f = self.function(prefix, [s for _, s in inputs], after, body, *allocations)
        value = self.name("t")
        args = ", ".join(n for n, _ in inputs) + ("," if len(inputs) == 1 else "")
        self.lines.append(
            f"            {value} = R.call_tir(cls.{f}, ({args}), "
            f'out_sinfo=R.Tensor({tuple(after)}, "{self.dtype}"))'
        )
        self.values.append((value, after))
        return value, after

    def staged(self, shape):
        """Work on a converted copy, with the stages marked."""
        before = self.conversion(shape, "A", "AP", '{"preproc": "pad"}', "pad")
        if before is None:
            return None
        padded, body = before
        head, v = self.loops(padded, "compute")
        load = f"AP[{', '.join(v)}]"
        body = [*body, *head, f"        ZP[{', '.join(v)}] = {self.expression(load)}"]
        after = self.conversion(padded, "ZP", "Z", '{"postproc": "crop"}', "crop")
        if after is None:
            return None
        shape, more = after
        return shape, [*body, *more], [("AP", padded), ("ZP", padded)]

    def sum_of(self, x, y):
        head, v = self.loops(x[1], "add")
        at = ", ".join(v)
        e = self.rng.choice([f"A[{at}] + B[{at}]", f"A[{at}] * B[{at}]", f"A[{at}] - B[{at}]"])
        return self.call("add", (list(x[1]), [*head, f"        Z[{at}] = {e}"]), [x, y])

    def build(self):
        rng = self.rng
        params = []
        for k in range(rng.choice([1, 1, 2])):
            shape = [rng.choice([1, 2, 3, 4, 5, 6, 7]) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
            params.append((f"x{k}", shape))
        self.values += params
        if rng.random() < 0.3:
            shape = [rng.choice([2, 3, 5]) for _ in range(rng.choice([1, 2]))]
            values = self.nested(shape)
            self.lines.append(f'            w = R.const({values}, "{self.dtype}")')
            self.values.append(("w", shape))
        for _ in range(rng.choice([2, 3, 4, 5, 6])):
            # The latest value is the most interesting one.
            x = self.values[-1] if rng.random() < 0.75 else rng.choice(self.values)
            maker = rng.choice(
                [self.conversion] * 5
                + [self.pointwise] * 3
                + [self.staged] * 2
                + [self.reduction, self.window, self.indexed]
            )
            same = [v for v in self.values if v[1] == x[1] and v is not x]
            if same and rng.random() < 0.3:
                self.sum_of(x, rng.choice(same))
                continue
            self.call("f", maker(x[1]), [x])
        outputs = [self.values[-1]]
        if rng.random() < 0.3:
            more = rng.choice(self.values)
            if more[0].startswith("t") and more != outputs[0]:
                outputs.append(more)
        if not outputs[0][0].startswith("t"):
            return None
        header = ", ".join(f'{n}: R.Tensor({tuple(s)}, "{self.dtype}")' for n, s in params)
        names = ", ".join(n for n, _ in outputs)
        graph = [
            "    @R.function",
            f"    def main({header}):",
            "        cls = Module",
            "        with R.dataflow():",
            *self.lines,
            f"            R.output({names})",
            f"        return {names if len(outputs) == 1 else '(' + names + ')'}",
        ]
        return (
            "@I.ir_module\nclass Module:\n"
            + "\n\n".join([*self.functions, "\n".join(graph)])
            + "\n"
        )

    def nested(self, shape):
        if not shape:
            v = self.rng.choice([0, 1, 2, -1, 3])
            return str(float(v) if self.dtype.startswith("float") else v)
        return "[" + ", ".join(self.nested(shape[1:]) for _ in range(shape[0])) + "]"

    def parameters(self):
        return [s for n, s in self.values if n.startswith("x")]


def _product(items):
    product = 1
    for n in items:
        product *= n
    return product


PASSES = [
    "cancel_layout",
    "cancel_layout",
    "lift_layout",
    "lift_layout",
    "flow_layout",
    "flow_layout",
    "plan_layout",
    "fold_constant",
    "fuse",
    "inline",
    "legalize",
    "use_assume",
    "simplify",
    "remove_branching_through_overcompute",
    "remove_no_op",
]


def chain(rng):
    passes = [rng.choice(PASSES) for _ in range(rng.choice([1, 2, 2, 3, 4]))]
    settings = {}
    if "lift_layout" in passes and rng.random() < 0.5:
        settings["lift_layout.padding"] = rng.choice(["value", "undef", "none"])
    if "fold_constant" in passes and rng.random() < 0.3:
        settings["fold_constant.growth"] = rng.choice([0, 16, 4096])
    return passes, settings
