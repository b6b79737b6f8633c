"""Programs whose extents, and products of extents, come near the ends of integer types.

They are too large to run. A few iterations of each loop run instead, the first and the last ones
among them, over memory that keeps what is written and makes up the rest from the place of the
cell. The program is pointwise, so that each cell that is written says whether it is right; and the
loops around a store must be at least as many iterations as there are cells.
"""

import math
import random

from evaluator import Module, Runtime, execute
from memory import Buffer, Fault, Memory
from oracle import Failure

EXTENTS = [1, 3, 255, 32768, 46341, 65536, 65537, 70000, 779 * 5513437 % (1 << 31), (1 << 31) - 1]
SAMPLES = 5
# No memory holds more bytes.
MOST = (1 << 63) - 1


def program(rng):
    """The text of a program, and its shape."""
    shape = [rng.choice(EXTENTS) for _ in range(rng.choice([1, 2, 2, 3]))]
    while math.prod(shape) * 4 > MOST:
        shape.pop()
    loops = [f"i{k}" for k in range(len(shape))]
    axes = [f"v{k}" for k in range(len(shape))]
    extents = ", ".join(map(str, shape))
    tuple_ = f"({extents},)"
    head = (
        f"for {', '.join(loops)} in T.grid({extents}):"
        if len(shape) > 1
        else f"for i0 in range({extents}):"
    )
    lines = [
        "@T.prim_func",
        f'def main(A: T.Buffer({tuple_}, "int32"), B: T.Buffer({tuple_}, "int32")):',
        f"    {head}",
        '        with T.block("B"):',
        *(f"            {v} = T.axis.spatial({n}, {i})" for v, n, i in zip(axes, shape, loops)),
        f"            B[{', '.join(axes)}] = A[{', '.join(axes)}] + 1",
    ]
    return "\n".join(lines) + "\n", shape


def step(rng, block):
    """The lines of a script with one primitive on the loops of the block."""
    names = [f"l{k}" for k in range(len(block.loops))]
    lines = ['b = sch.get_block("B")', f"{', '.join(names)}, = sch.get_loops(b)"]
    l = rng.choice(names)
    factor = rng.choice([2, 3, 779, 65536, 70000, 5513437, (1 << 31) - 1])
    indices = ", ".join(f"i{k}" for k in range(len(names)))
    k = rng.randrange(len(names))
    items = [f"i{j}" for j in range(len(names))]
    items[k : k + 1] = [f"i{k} // {factor}", f"i{k} % {factor}"]
    mapped = f"lambda {indices}: [{', '.join(items)}]"
    primitive = rng.choice(
        ["split", "split", "split", "fuse", "fuse", "reorder", "transform_loops"]
    )
    primitive = rng.choice([primitive] * 6 + ["transform_block_layout", "loop_partition"])
    call = {
        "split": f"{l}, factors={rng.choice([[None, factor], [factor, None], [65536, factor]])}",
        "fuse": ", ".join(names),
        "reorder": ", ".join(reversed(names)),
        "transform_loops": f"[{', '.join(names)}], {mapped}",
        "transform_block_layout": f"b, {mapped}",
        "loop_partition": f"{l}, factors=[None, {factor}]",
    }[primitive]
    return primitive, "\n".join([*lines, f"sch.{primitive}({call})"]) + "\n"


class Cells:
    """Cells without memory for all of them."""

    def __init__(self, count, value, stored=lambda: None):
        self.count, self.value, self.stored, self.written = count, value, stored, {}

    def __len__(self):
        # `len` of Python ends at 63 bits.
        return min(self.count, (1 << 63) - 1)

    def __getitem__(self, flat):
        return self.written[flat] if flat in self.written else self.value(flat)

    def __setitem__(self, flat, value):
        self.written[flat] = value
        self.stored()


class Sampled(Runtime):
    """Runs a few iterations of each loop."""

    def __init__(self, seed):
        super().__init__()
        self.rng = random.Random(seed)
        # Iterations of the loops that have ended, for each level of loops around.
        self.iterations = [0]
        # Stores that are in no loop of such a level.
        self.stores = [0]
        # Loops in which a store stands beside others; its guard may hide it in some iterations.
        self.mixed = set()

    def stored(self):
        self.stores[-1] += 1

    def sampled(self, low, high, name):
        count = max(high - low, 0)
        chosen = {*range(low, min(low + 2, high)), *range(max(low, high - 2), high)}
        while len(chosen) < min(SAMPLES, count):
            chosen.add(self.rng.randrange(low, high))
        self.spend(len(chosen))
        self.iterations.append(0)
        self.stores.append(0)
        yield from sorted(chosen)
        # The loops inside and what stands beside them, or this one alone where there are none; all
        # iterations have the same.
        inside, beside = self.iterations.pop(), self.stores.pop()
        if beside:
            self.mixed.add(name)
        if name in self.mixed or not inside:
            inside += max(beside, len(chosen))
        self.iterations[-1] += count * inside // len(chosen) if chosen else 0

    serial = parallel = vectorized = thread = sampled


def place_value(flat):
    return (flat * 2654435761 >> 7) % 100003


def failure(text, shape, seed):
    """What is wrong with a program that `program` made and some steps changed, or `None`."""
    module = Module(text)
    count = math.prod(shape)
    rt = Sampled(seed)
    source = Cells(count, place_value)
    target = Cells(count, lambda flat: 0, rt.stored)
    arguments = [
        Buffer(rt, name, "int32", Memory(name, cells, rt.number()), shape)
        for name, cells in (("A", source), ("B", target))
    ]
    try:
        execute(module.tensors["main"], rt, arguments)
    except Fault as fault:
        return None if fault.kind == "steps" else Failure(fault.kind, str(fault))
    for flat, value in target.written.items():
        if value != place_value(flat) + 1:
            return Failure("value", f"cell {flat} is {value}")
    if source.written:
        return Failure("value", "the input is written")
    # What no loop is around is one store; that is not worth counting apart.
    iterations = rt.iterations[0] + len(target.written)
    if iterations < count:
        return Failure("value", f"at most {iterations} iterations for {count} cells")
    return None
