"""Random steps of schedules: every primitive, with arguments that often fit."""

from dataclasses import dataclass

import numpy


@dataclass
class Step:
    """One primitive: the lines of a script, and what it does to the layout of arguments."""

    primitive: str
    lines: list
    layout: object = None  # (buffer, map, pad) of `transform_layout`


@dataclass
class Layout:
    """How an argument lies now: maps of indices, one after the other."""

    maps: list  # (function of indices, shape, pad value or None)

    def physical(self, array, given):
        for function, shape, pad in self.maps:
            after = numpy.zeros(shape, dtype=array.dtype)
            known = set()
            image = set()
            for flat, at in enumerate(numpy.ndindex(array.shape)):
                to = target(function, at)
                after[to] = array[at]
                place = int(numpy.ravel_multi_index(to, shape)) if shape else 0
                image.add(place)
                if given is None or flat in given:
                    known.add(place)
            if pad is not None:
                for place in set(range(after.size)) - image:
                    after.reshape(-1)[place] = pad
                    known.add(place)
            array, given = after, known
        return array, given

    def logical(self, cells, shape):
        """The cells in their logical order."""
        places = numpy.arange(int(numpy.prod(shape, dtype=int))).reshape(shape)
        for function, after, _ in self.maps:
            moved = numpy.full(after, -1)
            for at in numpy.ndindex(places.shape):
                moved[target(function, at)] = places[at]
            places = moved
        order = {int(p): i for i, p in enumerate(places.reshape(-1)) if p >= 0}
        return [cells[order[i]] for i in range(len(order))]


def target(function, at):
    to = function(*at)
    return tuple(to) if isinstance(to, (list, tuple)) else (to,)


def index_map(rng, shape):
    """The text of a lambda over the indices of a shape that is one to one."""
    names = [f"i{k}" for k in range(len(shape))]
    items = list(names)
    for _ in range(rng.choice([1, 1, 2])):
        kind = rng.random()
        if kind < 0.3 and len(items) > 1:
            rng.shuffle(items)
        elif kind < 0.7 and items:
            k = rng.randrange(len(items))
            factor, offset = rng.choice([2, 3, 4, 8]), rng.choice([0, 0, 0, 1, 2])
            e = f"({items[k]} + {offset})" if offset else f"({items[k]})"
            items[k : k + 1] = [f"{e} // {factor}", f"{e} % {factor}"]
        elif kind < 0.8 and len(items) == len(names) >= 2:
            k = rng.randrange(len(items) - 1)
            if items == names:
                items[k : k + 2] = [f"{names[k]} * {shape[k + 1]} + {names[k + 1]}"]
        elif kind < 0.9 and items == names and items:
            k = rng.randrange(len(items))
            items[k] = f"{shape[k] - 1} - {names[k]}"
        elif kind < 0.95 and len(items) < 5:
            items.insert(rng.randrange(len(items) + 1), "0")
    return f"lambda {', '.join(names)}: [{', '.join(items)}]"


class Steps:
    """Makes steps for a function of known structure."""

    def __init__(self, rng, structure):
        self.rng = rng
        self.s = structure

    def step(self):
        """A random step, or `None` if nothing can be asked for."""
        for _ in range(20):
            block = self.rng.choice(self.s.blocks) if self.s.blocks else None
            if block is None:
                return None
            held = block.inner and block.has_if and self.rng.random() < 0.4
            primitive = self.rng.choice(HELD if held else PRIMITIVES)
            made = getattr(self, primitive)(block)
            if made is None:
                continue
            arguments, *more = made if isinstance(made, tuple) else (made,)
            name = primitive.removesuffix("_")
            lines = self.handles(block)
            lines += more[0] if more else []
            lines.append(f"sch.{name}({arguments})")
            layout = more[1] if len(more) > 1 else None
            return Step(name, lines, layout)
        return None

    def handles(self, block, b="b", l="l"):
        lines = [f'{b} = sch.get_block("{block.name}")']
        if block.loops:
            names = "".join(f"{l}{k}, " for k in range(len(block.loops)))
            lines.append(f"{names.strip()} = sch.get_loops({b})")
        return lines

    def loop(self, block, l="l"):
        return f"{l}{self.rng.randrange(len(block.loops))}" if block.loops else None

    def buffer(self, block, side):
        """The name of a buffer of the block."""
        names = block.writes if side == "write" else block.reads
        return self.rng.choice(names) if names else None

    def split(self, block):
        if not block.loops:
            return None
        k = self.rng.randrange(len(block.loops))
        n = block.loops[k].extent
        factors = self.rng.choice(
            [[None, 2], [None, 3], [None, 4], [2, None], [3, None], [2, None, 2], [None, 16]]
        )
        if n and self.rng.random() < 0.15:
            factors = [-(-n // 2), 2]
        return f"l{k}, factors={factors}"

    def fuse(self, block):
        if len(block.loops) < 2:
            return None
        k = self.rng.randrange(len(block.loops) - 1)
        m = self.rng.randrange(k + 2, len(block.loops) + 1)
        return ", ".join(f"l{i}" for i in range(k, m))

    def reorder(self, block):
        n = len(block.loops)
        if n < 2:
            return None
        chosen = self.rng.sample(range(n), self.rng.randrange(2, n + 1))
        return ", ".join(f"l{i}" for i in chosen)

    def parallel(self, block):
        return self.loop(block)

    vectorize = unroll = parallel

    def bind(self, block):
        l = self.loop(block)
        return l and f'{l}, "{self.rng.choice(["threadIdx.x", "blockIdx.x", "vthread.x"])}"'

    def cache_read(self, block):
        k = self.buffer(block, "read")
        return None if k is None else f'b, "{k}", "{self.rng.choice(["global", "local"])}"'

    def cache_write(self, block):
        k = self.buffer(block, "write")
        return None if k is None else f'b, "{k}", "{self.rng.choice(["global", "local"])}"'

    def cache_inplace(self, block):
        both = [name for name in block.reads if name in block.writes]
        return f'b, "{self.rng.choice(both)}", "local"' if both else None

    def layout_of(self, block, intermediate=0.7):
        name = self.buffer(block, self.rng.choice(["read", "write"]))
        if name is None or self.s.shapes.get(name) is None:
            return None
        if name in self.s.parameters and self.rng.random() < intermediate:
            return None
        return name, self.s.shapes[name]

    def transform_layout(self, block):
        chosen = self.layout_of(block)
        if chosen is None or not chosen[1]:
            return None
        name, shape = chosen
        text = index_map(self.rng, shape)
        pad, value = "", None
        kind = self.rng.random()
        dtype = self.s.dtypes[name]
        if kind < 0.35:
            value = self.rng.choice([0, 0, 1, 7])
            typed = f"T.{dtype}({float(value) if dtype.startswith('float') else value})"
            if dtype == "bool":
                value = bool(value)
                typed = f"T.bool({value})"
            pad = f", pad_value={typed}"
        elif kind < 0.45:
            pad = f', pad_value=lambda *i: T.undef(dtype="{dtype}")'
        return f'b, "{name}", {text}{pad}', [], (name, eval(text), value)

    def set_axis_separator(self, block):
        chosen = self.layout_of(block)
        if chosen is None or len(chosen[1]) < 2:
            return None
        name, shape = chosen
        return f'b, "{name}", axis_separators=[{self.rng.randrange(1, len(shape))}]'

    def transform_block_layout(self, block):
        if not block.loops or any(l.extent is None for l in block.loops):
            return None
        return f"b, {index_map(self.rng, [l.extent for l in block.loops])}"

    def transform_loops(self, block):
        if not block.loops or any(l.extent is None for l in block.loops):
            return None
        names = ", ".join(f"l{k}" for k in range(len(block.loops)))
        return f"[{names}], {index_map(self.rng, [l.extent for l in block.loops])}"

    def fission(self, block):
        mates = [b for b in self.s.blocks if b.nest == block.nest]
        l = self.loop(block) if len(mates) > 1 else None
        return l and f"{l}, {self.rng.randrange(1, 3)}"

    def hoist_expression(self, block):
        if not block.has_if or not block.inner:
            return None
        return f"b, {self.rng.choice([7, 7, 1, 3, 15])}, {self.rng.choice([7, 1, 2, 4])}"

    def reduce_loop_extents(self, block):
        return "b" if block.has_if and block.inner else None

    def remove_overcompute_through_branching(self, block):
        return "b" if block.inner else None

    def compute_inline(self, block):
        return "b" if self.s.consumers(block) and not block.has_init else None

    def reverse_compute_inline(self, block):
        return "b" if self.s.producers(block) and not block.has_init else None

    def remove_branching_through_overcompute(self, block):
        return self.rng.choice(["b", "b", "b, wrap_indices=True"]) if block.has_if else None

    def loop_partition(self, block):
        l = self.loop(block)
        return l and self.rng.choice([l, f"{l}, factors=[2, None]", f"{l}, factors=[None, 1]"])

    def merge_loops(self, block):
        others = [b for b in self.s.blocks if b.nest == block.nest + 1 and b.loops]
        if not others or not block.loops:
            return None
        other = self.rng.choice(others)
        return "l0, m0", self.handles(other, "c", "m")

    def sequential_buffer_access(self, block):
        name = self.buffer(block, self.rng.choice(["read", "write"]))
        return None if name is None else f'b, "{name}"'

    def decompose_padding(self, block):
        return f"b, {self.loop(block)}" if block.has_if and block.loops else None

    def reduced_loops(self, block):
        """The places of the loops that a block with an initialisation reduces over."""
        if not block.has_init:
            return []
        return [k for k, l in enumerate(block.loops) if l.name in block.reduced]

    def decompose_reduction(self, block):
        reduced = self.reduced_loops(block)
        if not reduced:
            return None
        # Mostly one that the initialisation may stand in front of.
        most = reduced[0] if self.rng.random() < 0.8 else len(block.loops) - 1
        return f"b, l{self.rng.randrange(most + 1)}"

    def pad_einsum(self, block):
        if not block.kinds:
            return None
        return f"b, padding={[self.rng.choice([1, 2, 4, 8]) for _ in block.kinds]}"

    def set_scope(self, block):
        name = self.buffer(block, "write")
        return None if name is None else f'b, "{name}", "{self.rng.choice(["local", "shared"])}"'

    def annotate(self, block):
        return f'{self.rng.choice(["b", self.loop(block) or "b"])}, "pragma_note", 1'

    def reindex_cache(self, block, side):
        name = self.buffer(block, side)
        if name is None or not block.kinds:
            return None
        names = [f"i{j}" for j in range(len(block.kinds))]
        chosen = self.rng.sample(names, self.rng.randrange(1, len(names) + 1))
        scope = self.rng.choice(["global", "local"])
        return f'b, "{name}", "{scope}", lambda {", ".join(names)}: [{", ".join(chosen)}]'

    def reindex_cache_read(self, block):
        return self.reindex_cache(block, "read")

    def reindex_cache_write(self, block):
        return self.reindex_cache(block, "write")

    def at(self, others):
        others = [b for b in others if b.loops]
        if not others:
            return None
        other = self.rng.choice(others)
        return f"b, {self.loop(other, 'm')}", self.handles(other, "c", "m")

    def compute_at(self, block):
        return self.at(self.s.consumers(block))

    def reverse_compute_at(self, block):
        return self.at(self.s.producers(block))

    def rfactor(self, block):
        reduced = self.reduced_loops(block)
        if not reduced:
            return None
        k = self.rng.choice(reduced) if self.rng.random() < 0.9 else 0
        ranks = [len(self.s.shapes.get(name) or []) for name in block.writes]
        return f"l{k}, {self.rng.randrange(max(ranks, default=0) + 1)}"


# What changes the loops and conditions in a block.
HELD = [
    "hoist_expression",
    "reduce_loop_extents",
    "remove_branching_through_overcompute",
    "remove_overcompute_through_branching",
    "remove_overcompute_through_branching",
]

PRIMITIVES = [
    "split",
    "split",
    "fuse",
    "reorder",
    "reorder",
    "parallel",
    "vectorize",
    "unroll",
    "bind",
    "cache_read",
    "cache_write",
    "cache_inplace",
    "transform_layout",
    "transform_layout",
    "transform_layout",
    "set_axis_separator",
    "transform_block_layout",
    "transform_block_layout",
    "transform_loops",
    "fission",
    "hoist_expression",
    "reduce_loop_extents",
    "loop_partition",
    "merge_loops",
    "remove_branching_through_overcompute",
    "remove_overcompute_through_branching",
    "sequential_buffer_access",
    "decompose_padding",
    "pad_einsum",
    "set_scope",
    "annotate",
    "reindex_cache_read",
    "reindex_cache_write",
    "compute_at",
    "compute_at",
    "reverse_compute_at",
    "reverse_compute_at",
    "compute_inline",
    "reverse_compute_inline",
    "rfactor",
    "decompose_reduction",
]
