"""Whether a changed program computes what the original one does.

Both run on the same data. Cells of arguments that the original does not read hold nothing, so that
the changed one may not read them either (rule 5 of `docs/semantics.md`); scratch memory holds
nothing until it is written.
"""

import ast
import math
import random

import numpy

import arithmetic
from evaluator import Module, Runtime, cells_of, graph_types, run_graph
from memory import ARBITRARY, UNWRITTEN, Fault, Unsupported

__all__ = ["Failure", "Illegal", "Module", "Reference", "Unsupported", "cells_of", "data"]


class Illegal(Exception):
    """The original program is no legal one on this data."""


class Failure:
    """What is wrong with a changed program: a kind for grouping, and a message."""

    def __init__(self, kind, message):
        self.kind, self.message = kind, message

    def __repr__(self):
        return f"{self.kind}: {self.message}"


def array(rng, shape, dtype, wild):
    """Random data; floats are small and exact in sums, unless `wild` adds what is not finite."""
    count = math.prod(shape)
    if dtype == "bool":
        values = [rng.random() < 0.5 for _ in range(count)]
    elif arithmetic.is_float(dtype):
        pool = [0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -0.25, 7.0, 5.5]
        if wild:
            pool += [math.inf, -math.inf, math.nan, -0.0, 1e30]
        values = [rng.choice(pool) for _ in range(count)]
    else:
        low, high = arithmetic.limits(dtype)
        pool = [0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 100, high]
        if low < 0:
            pool += [-1, -2, -3, low]
        if not wild:
            pool = [v for v in pool if abs(v) < 101]
        values = [rng.choice(pool) for _ in range(count)]
    return numpy.array(values, dtype=dtype).reshape(shape)


def data(function, seed):
    """Arguments for a translated function of constant shapes."""
    rng = random.Random(seed)
    wild = rng.random() < 0.4
    found = []
    for kind, dtype, shape in function.parameters:
        if kind != "buffer" or dtype is None or shape is None:
            raise Unsupported("parameters without a constant shape")
        found.append(array(rng, shape, dtype, wild))
    return found


def graph_arguments(module, name, seed):
    """Arguments for a graph function of constant shapes."""
    rng = random.Random(seed)
    wild = rng.random() < 0.3
    return [array(rng, shape, dtype, wild) for shape, dtype in graph_types(module, name)]


def graph_results(module, name, arrays):
    """The results of a graph function by their names, as (cells, type, shape)."""
    value = next(s.value for s in module.graphs[name].body if isinstance(s, ast.Return))
    names = [e.id for e in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return dict(zip(names, run_graph(module, name, arrays)))


class Reference:
    """The original program with what it computes on one set of data."""

    def __init__(self, module, name, arrays):
        self.permissive = module.has_undef()
        try:
            rt = Runtime(establish=True)
            arguments = [Module.argument(rt, i, a) for i, a in enumerate(arrays)]
            module.run(name, arguments, rt)
            self.arrays = [a.copy() for a in arrays]
            for position, flat, value in rt.established:
                self.arrays[position].reshape(-1)[flat] = value
            rt = Runtime()
            arguments = [Module.argument(rt, i, a) for i, a in enumerate(self.arrays)]
            for a in arguments:
                a.memory.given = set()
            module.run(name, arguments, rt)
            self.given = [a.memory.given for a in arguments]
            self.cells, _ = self.run(module, name, None, False)
        except Fault as fault:
            raise Illegal(str(fault)) from None

    def run(self, module, name, layouts, permissive, copies=False):
        rt = Runtime(permissive)
        rt.copies = copies
        arguments = []
        for i, (a, given) in enumerate(zip(self.arrays, self.given)):
            layout = layouts and layouts.get(i)
            if layout:
                a, given = layout.physical(a, given)
            arguments.append(Module.argument(rt, i, a, given))
        module.run(name, arguments, rt)
        return [a.memory.cells for a in arguments], arguments

    def forget(self, module, name, forgotten):
        """Runs the original again where nothing is given of some of its arguments."""
        self.given = [set() if f else g for f, g in zip(forgotten, self.given)]
        try:
            self.cells, _ = self.run(module, name, None, self.permissive)
        except Fault as fault:
            raise Illegal(str(fault)) from None

    def failure(self, module, name, *, layouts=None, tolerance=0.0, copies=False):
        """What is wrong with a changed program, or `None`.

        `layouts` says which arguments lie in another way now, by position; with `copies`, cells
        that nobody wrote may be copied where nobody reads the copy, as caches do.
        """
        try:
            changed, arguments = self.run(module, name, layouts, self.permissive, copies)
        except Fault as fault:
            return None if fault.kind == "steps" else Failure(fault.kind, str(fault))
        for i, (old, new) in enumerate(zip(self.cells, changed)):
            dtype, shape = arguments[i].dtype, self.arrays[i].shape
            layout = layouts and layouts.get(i)
            if layout:
                new = layout.logical(new, shape)
            wrong = difference(old, new, dtype, shape, tolerance)
            if wrong:
                return Failure("value", f"argument {i}{wrong}")
        return None


def difference(old, new, dtype, shape, tolerance):
    """The first cell that differs, as text; what was arbitrary may be anything."""
    if len(old) != len(new):
        return f" has {len(new)} elements instead of {len(old)}"
    for flat, (x, y) in enumerate(zip(old, new)):
        if x is ARBITRARY or x is y:
            continue
        at = list(map(int, numpy.unravel_index(flat, shape))) if shape else []
        if x is UNWRITTEN or y is ARBITRARY or y is UNWRITTEN:
            return f"{at} was {x} and is {y}"
        if not close(x, y, tolerance if arithmetic.is_float(dtype) else 0.0):
            return f"{at} was {x!r} and is {y!r}"
    return None


def close(x, y, tolerance):
    if x == y or (x != x and y != y):
        return True
    if not tolerance or not math.isfinite(x) or not math.isfinite(y):
        return False
    return abs(x - y) <= tolerance * max(abs(x), abs(y), 1.0)


def graph_failure(before, after, name, arrays, *, permissive=False, tolerance=0.0):
    """What is wrong with a changed graph function on this data, or `None`."""
    try:
        old = run_graph(before, name, arrays)
    except Fault as fault:
        raise Illegal(str(fault)) from None
    try:
        new = run_graph(after, name, arrays, permissive=permissive or before.has_undef())
    except Fault as fault:
        return None if fault.kind == "steps" else Failure(fault.kind, str(fault))
    if len(old) != len(new):
        return Failure("shape", f"{len(new)} results instead of {len(old)}")
    for i, ((x, dtype, shape), (y, other, now)) in enumerate(zip(old, new)):
        if (dtype, tuple(shape)) != (other, tuple(now)):
            return Failure("shape", f"result {i} was {dtype}{shape} and is {other}{now}")
        wrong = difference(x, y, dtype, shape, tolerance)
        if wrong:
            return Failure("value", f"result {i}{wrong}")
    return None
