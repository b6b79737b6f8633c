"""Runs modules of TVMScript, as `tilewright opt` prints them, on arrays of numpy.

The meaning of a program is that of `docs/semantics.md`; nothing here is shared with the compiler.
A program that does what no program may do ends with a `Fault`.
"""

import ast
import base64

import numpy

import arithmetic
import memory
from memory import ARBITRARY, UNWRITTEN, Buffer, Concurrent, Fault, Memory, Unsupported, equal
from translate import Translator, call_items, is_call, keyword, literal, literal_list, string

STEPS = 2_000_000


class Runtime:
    """State of one run, and what translated functions call."""

    def __init__(self, permissive=False, establish=False, steps=STEPS):
        # Whether cells that nobody wrote may be read, and hold anything.
        self.permissive = permissive
        # Whether an assumption `b[...] == v` about an argument is made true instead of checked.
        self.establish = establish
        # Whether cells that nobody wrote may be copied, as long as no operation uses them.
        self.copies = False
        self.steps = steps
        self.serial_number = 0
        self.concurrent = []
        self.arguments = {}
        # What `establish` made true: (position of the argument, cell, value).
        self.established = []

    def number(self):
        self.serial_number += 1
        return self.serial_number

    # Memory.

    def allocate(self, name, dtype, shape, strides, offset):
        if strides is None:
            count = 1
            for extent in shape:
                count *= max(extent, 0)
        else:
            count = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
            if any(n <= 0 for n in shape):
                count = 0
        count += offset
        if count > 1 << 22:
            raise Fault("steps", f"{name} has {count} elements")
        memory = Memory(name, [UNWRITTEN] * count, self.number())
        return Buffer(self, name, dtype, memory, shape, strides, offset)

    def view(self, name, dtype, memory, shape, strides, offset):
        return Buffer(self, name, dtype, memory, shape, strides, offset)

    def parameter(self, name, dtype, argument, shape, strides, offset):
        if argument.dtype != dtype:
            raise Fault("shape", f"{name} is {dtype}, its argument {argument.dtype}")
        if argument.shape != tuple(shape):
            raise Fault("shape", f"{name} is {tuple(shape)}, its argument {argument.shape}")
        if strides is None and offset == 0:
            strides, offset = argument.strides, argument.offset
        return Buffer(self, name, dtype, argument.memory, shape, strides, offset)

    def size(self, argument, axis):
        return argument.shape[axis]

    def listed(self, values, dtype):
        return cells_of(numpy.array(values).reshape(-1), dtype)

    def decoded(self, text, dtype):
        return cells_of(numpy.frombuffer(base64.b64decode(text), dtype=dtype), dtype)

    def constant(self, name, dtype, shape, cells):
        return Buffer(self, name, dtype, Memory(name, cells, self.number(), True), shape)

    def touch(self, memory, flat, value, update):
        for loop in self.concurrent:
            loop.touch(memory, flat, value, update)

    # Loops and blocks.

    def spend(self, count):
        self.steps -= max(count, 0)
        if self.steps < 0:
            raise Fault("steps", "the program runs too long")

    def bounds(self, low, high):
        if low is ARBITRARY or high is ARBITRARY:
            raise Fault("arbitrary", "the bounds of a loop are arbitrary")
        self.spend(high - low)
        return range(low, high)

    def serial(self, low, high, name):
        return self.bounds(low, high)

    def together(self, kind, low, high, name):
        loop = Concurrent(kind, name)
        values = self.bounds(low, high)
        if len(values) < 2:
            yield from values
            return
        self.concurrent.append(loop)
        for value in values:
            loop.begin(value, self.serial_number)
            yield value
        self.concurrent.pop()

    def parallel(self, low, high, name):
        return self.together("parallel", low, high, name)

    def vectorized(self, low, high, name):
        return self.together("vectorized", low, high, name)

    def thread(self, low, high, name):
        return self.together("thread", low, high, name)

    def axis(self, name, value, low, high):
        if not low <= value < high:
            raise Fault("out of range", f"axis {name} is {value}, outside of [{low}, {high})")

    # Promises.

    def check(self, condition, message):
        if not condition:
            raise Fault("assertion", str(message))

    def assume(self, condition, text):
        if condition is ARBITRARY:
            raise Fault("arbitrary", f"{text} of an arbitrary value")
        if not condition:
            raise Fault("assumption", text)

    def holds(self, buffer, indices, value):
        flat = buffer.place(indices)
        if self.establish and buffer.memory.name in self.arguments:
            buffer.memory.cells[flat] = value
            self.established.append((self.arguments[buffer.memory.name], flat, value))
        return buffer.load(*indices) == value


def cells_of(array, dtype):
    """The cells of an array, as Python numbers of a type."""
    kind = bool if dtype == "bool" else float if arithmetic.is_float(dtype) else int
    return [kind(x) for x in array.reshape(-1).tolist()]


def array_of(cells, dtype, shape):
    """Three arrays: the values, and where cells are written and where not arbitrary."""
    values = [0 if c is ARBITRARY or c is UNWRITTEN else c for c in cells]
    known = [c is not ARBITRARY and c is not UNWRITTEN for c in cells]
    if arithmetic.is_integer(dtype) and dtype.startswith("u"):
        array = numpy.array(values, dtype="uint64").astype(dtype)
    else:
        array = numpy.array(values, dtype=dtype)
    return array.reshape(shape), numpy.array(known, dtype=bool).reshape(shape)


class Module:
    """Functions by name."""

    def __init__(self, text):
        self.text = text
        self.tensors = {}
        self.graphs = {}
        try:
            tree = ast.parse(text)
        except (SyntaxError, RecursionError, ValueError) as e:
            raise Unsupported(f"not Python: {e}") from None
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.add(node)
            elif isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef):
                        self.add(inner)

    def add(self, node):
        decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        space = decorators[0].value.id if decorators else "T"
        if space == "R":
            self.graphs[node.name] = node
            return
        function = Translator(node).translate()
        scope = {"A": arithmetic, "ARBITRARY": memory.ARBITRARY}
        scope |= {f"W_{dtype}": wrap for dtype, wrap in arithmetic.WRAPPERS.items()}
        try:
            exec(compile(function.source, f"<{node.name}>", "exec"), scope)
        except (SyntaxError, RecursionError, MemoryError) as e:
            raise Unsupported(f"the translation does not compile: {e}") from None
        function.call = scope["function"]
        self.tensors[node.name] = function

    def has_undef(self):
        return "T.undef(" in self.text

    def run(self, name, arguments, rt):
        """Runs a tensor function on `arguments`, made by `Module.argument`; results are in them."""
        function = self.tensors[name]
        scratch = function.attributes.get("tilewright.workspace", 0)
        if len(function.parameters) - len(arguments) != scratch:
            raise Fault("shape", f"{name} takes {len(function.parameters)} arguments")
        rt.arguments = {a.memory.name: i for i, a in enumerate(arguments) if isinstance(a, Buffer)}
        more = self.scratch(rt, function, scratch) if scratch else []
        execute(function, rt, [*arguments, *more])

    @staticmethod
    def argument(rt, position, value, given=None):
        """An argument from an array or a number; of an array with `given` only those cells are
        known."""
        if numpy.isscalar(value):
            return value
        dtype = str(value.dtype)
        cells = cells_of(value, dtype)
        if given is not None:
            cells = [c if i in given else UNWRITTEN for i, c in enumerate(cells)]
        name = f"argument {position}"
        return Buffer(rt, name, dtype, Memory(name, cells, rt.number()), value.shape)

    def scratch(self, rt, function, count):
        """Memory for the parameters that only the function itself uses."""
        node = next(
            n
            for n in ast.walk(ast.parse(self.text))
            if isinstance(n, ast.FunctionDef) and n.name == function.name
        )
        found = []
        for p in node.args.args[-count:]:
            if not is_call(p.annotation, "Buffer"):
                raise Unsupported("scratch of open size")
            shape = [literal(e) for e in call_items(keyword(p.annotation, "shape", 0))]
            dtype = string(keyword(p.annotation, "dtype", 1))
            found.append(rt.allocate(p.arg, dtype, shape, None, 0))
        return found


def execute(function, rt, arguments):
    try:
        function.call(rt, *arguments)
    except RecursionError:
        raise Unsupported("the program is nested too deeply") from None


class Graph:
    """Runs a graph function of a module."""

    def __init__(self, module, rt):
        self.module = module
        self.rt = rt

    def run(self, name, arguments):
        node = self.module.graphs[name]
        scope = {}
        for p, a in zip(node.args.args, arguments, strict=True):
            scope[p.arg] = a
        return self.body(node.body, scope)

    def body(self, body, scope):
        for s in body:
            match s:
                case ast.Return(value=value):
                    return self.value(value, scope)
                case ast.With(body=inner):
                    self.body(inner, scope)
                case ast.Assign(targets=[ast.Name(id="cls")]):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    scope[name] = self.value(value, scope)
                case ast.AnnAssign(target=ast.Name(id=name), value=value):
                    scope[name] = self.value(value, scope)
                case ast.Expr():
                    pass
                case _:
                    raise Unsupported(f"statement: {ast.unparse(s)}")
        return None

    def value(self, e, scope):
        match e:
            case ast.Name(id=name):
                return scope[name]
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self.value(i, scope) for i in items)
            case ast.Subscript(value=inner, slice=ast.Constant(value=i)):
                return self.value(inner, scope)[i]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="R"), attr="const")):
                return self.constant(e)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="R"), attr="tuple"), args=items):
                return tuple(self.value(i, scope) for i in items)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="R"), attr="call_tir")):
                return self.call_tir(e, scope)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="cls"), attr=name), args=items):
                return self.run(name, [self.value(i, scope) for i in items])
        raise Unsupported(f"graph expression: {ast.unparse(e)}")

    def constant(self, e):
        dtype = string(keyword(e, "dtype", 1))
        b64 = keyword(e, "b64")
        if b64 is not None:
            shape = literal(keyword(e, "shape"))
            cells = self.rt.decoded(string(b64), dtype)
        else:
            values = literal_list(keyword(e, "value", 0))
            shape = numpy.array(values).shape
            cells = self.rt.listed(values, dtype)
        return self.rt.constant("constant", dtype, shape, cells)

    def tensor_type(self, e):
        shape = [literal(i) for i in call_items(keyword(e, "shape", 0))]
        return shape, string(keyword(e, "dtype", 1))

    def call_tir(self, e, scope):
        callee = e.args[0].attr
        inputs = self.value(e.args[1], scope)
        inputs = list(inputs) if isinstance(inputs, tuple) else [inputs]
        if keyword(e, "tir_vars") is not None:
            raise Unsupported("tir_vars")
        out = keyword(e, "out_sinfo", 2)
        types = out.elts if isinstance(out, ast.List) else [out]
        outputs = []
        for t in types:
            shape, dtype = self.tensor_type(t)
            outputs.append(self.rt.allocate(callee, dtype, shape, None, 0))
        before = [list(b.memory.cells) for b in inputs]
        function = self.module.tensors[callee]
        scratch = function.attributes.get("tilewright.workspace", 0)
        more = self.module.scratch(self.rt, function, scratch) if scratch else []
        execute(function, self.rt, [*inputs, *outputs, *more])
        for b, old in zip(inputs, before):
            if any(x is not y and not equal(x, y) for x, y in zip(b.memory.cells, old)):
                raise Fault("shape", f"{callee} writes an argument of the graph")
        return tuple(outputs) if len(outputs) != 1 else outputs[0]


def graph_types(module, name):
    """Shapes and types of the arguments of a graph function."""
    types = Graph(module, None).tensor_type
    return [types(p.annotation) for p in module.graphs[name].args.args]


def run_graph(module, name, arrays, *, permissive=False, steps=STEPS):
    """Runs a graph function; returns its results as (cells, dtype, shape)."""
    rt = Runtime(permissive, False, steps)
    arguments = [Module.argument(rt, i, a) for i, a in enumerate(arrays)]
    result = Graph(module, rt).run(name, arguments)
    results = list(result) if isinstance(result, tuple) else [result]
    return [(b.memory.cells, b.dtype, b.shape) for b in results]
