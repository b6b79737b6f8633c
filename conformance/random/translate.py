"""Tensor functions of TVMScript as Python source.

The text that `tilewright opt` prints is Python, so that `ast` parses it. Each function becomes a
Python function over the objects of `memory.py`; names keep their text behind the prefix `v_`.
Every operation is emitted with its type: `T.int32` values wrap, `T.float32` values round. An
expression of vectors is emitted for one lane, `lane`, and evaluated for each of them.
"""

import ast
from dataclasses import dataclass, field

from arithmetic import FLOAT_FUNCTIONS, TESTS, integer_function, is_float, is_integer, limits
from memory import Unsupported

DTYPES = {f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
DTYPES |= {"bool", "float16", "float32", "float64"}

COMPARE = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
COMPARE_CALLS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
DIVISIONS = {ast.FloorDiv: "floordiv", ast.Mod: "floormod"}
DIVISION_CALLS = {
    "floordiv": "floordiv",
    "floormod": "floormod",
    "truncdiv": "truncdiv",
    "truncmod": "truncmod",
    "indexdiv": "floordiv",
    "indexmod": "floormod",
    "Div": "truncdiv",
    "Mod": "truncmod",
}
LOOPS = {"range": "serial", "serial": "serial", "unroll": "serial"}
CONCURRENT = {"parallel": "parallel", "vectorized": "vectorized", "thread_binding": "thread"}
IGNORED = {"reads", "writes", "block_attr", "func_attr"}


@dataclass
class Code:
    """An expression: Python text and its type. A plain number has no type yet, but a value."""

    text: str
    dtype: str | None
    value: object = None
    lanes: int = 1


@dataclass
class Function:
    """A translated function; `parameters` are (kind, type, shape), where kind is "scalar" or
    "buffer", and the shape of a buffer is known if it is constant."""

    name: str
    parameters: list
    attributes: dict
    source: str = ""
    call: object = None
    names: list = field(default_factory=list)


def dotted(e):
    """`T.name` as "name", a bare name as itself; `None` for anything else."""
    if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id == "T":
        return e.attr
    if isinstance(e, ast.Name):
        return e.id
    return None


def is_call(e, *names):
    """Whether an expression is a call of one of these `T.*`, or of `T.axis.*` for "axis.*"."""
    if not isinstance(e, ast.Call):
        return False
    f = e.func
    if (
        isinstance(f, ast.Attribute)
        and isinstance(f.value, ast.Attribute)
        and f.value.attr == "axis"
        and isinstance(f.value.value, ast.Name)
        and f.value.value.id == "T"
    ):
        return "axis." + f.attr in names
    return dotted(f) in names


def keyword(call, name, position=None):
    for k in call.keywords:
        if k.arg == name:
            return k.value
    if position is not None and position < len(call.args):
        return call.args[position]
    return None


def literal(e):
    if is_call(e, *DTYPES) and len(e.args) == 1:
        e = e.args[0]  # a typed number
    try:
        return ast.literal_eval(e)
    except (ValueError, TypeError, SyntaxError):
        raise Unsupported(f"not a constant: {ast.unparse(e)}") from None


def string(e):
    value = literal(e)
    if not isinstance(value, str):
        raise Unsupported(f"not a string: {ast.unparse(e)}")
    return value


class Translator:
    """One function."""

    def __init__(self, definition):
        self.definition = definition
        self.lines = []
        self.indent = 1
        self.types = {}  # variable -> (dtype, lanes)
        self.buffers = {}  # buffer -> dtype
        self.handles = {}  # parameter of type handle -> name of the argument
        self.loops = {}  # loop variable -> Python text of its first value
        self.free = {}  # `n = T.int32()` -> dtype
        self.fresh = 0
        self.accumulator = None  # the load of an update, and the name of the update
        self.initialised = {}  # buffers that a `T.init()` prepares for an update, with its name

    def line(self, text):
        self.lines.append("    " * self.indent + text)

    def temporary(self):
        self.fresh += 1
        return f"t{self.fresh}"

    # Expressions.

    def convert(self, code, dtype):
        """A plain number as a constant of a type."""
        if code.dtype is not None:
            return code
        value = code.value
        if is_float(dtype):
            return Code(f"W_{dtype}({self.number(float(value))})", dtype)
        if dtype == "bool":
            return Code(repr(bool(value)), dtype)
        if isinstance(value, float) and value != int(value):
            raise Unsupported(f"{value} as {dtype}")
        low, high = limits(dtype)
        if not low <= int(value) <= high:
            raise Unsupported(f"{value} does not fit {dtype}")
        return Code(repr(int(value)), dtype)

    @staticmethod
    def number(value):
        if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
            return f'float("{value}")'
        return repr(value)

    def typed(self, e, dtype="int32"):
        """An expression whose plain numbers are of the given type."""
        return self.convert(self.expr(e), dtype)

    def of(self, e, dtype):
        """An expression that must have this type; a store converts nothing."""
        code = self.typed(e, dtype)
        if code.dtype != dtype:
            raise Unsupported(f"{code.dtype} where {dtype} is needed: {ast.unparse(e)}")
        return code

    def condition(self, e):
        code = self.typed(e, "bool")
        if code.dtype != "bool":
            return Code(f"({code.text} != 0)", "bool", lanes=code.lanes)
        return code

    def unify(self, a, b):
        if a.dtype is None and b.dtype is None:
            dtype = "int32" if isinstance(a.value, int) and isinstance(b.value, int) else "float32"
            a, b = self.convert(a, dtype), self.convert(b, dtype)
        elif a.dtype is None:
            a = self.convert(a, b.dtype)
        elif b.dtype is None:
            b = self.convert(b, a.dtype)
        if a.dtype != b.dtype:
            raise Unsupported(f"operands of types {a.dtype} and {b.dtype}")
        return a, b, max(a.lanes, b.lanes)

    def arithmetic(self, symbol, a, b):
        if a.dtype is None and b.dtype is None:
            value = {"+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value}[symbol]
            return Code(self.number(value), None, value)
        a, b, lanes = self.unify(a, b)
        if a.dtype == "bool":
            raise Unsupported("arithmetic of bool")
        text = f"{a.text} {symbol} {b.text}"
        return Code(f"W_{a.dtype}({text})", a.dtype, lanes=lanes)

    def division(self, name, a, b):
        if a.dtype is None and b.dtype is None and b.value != 0:
            value = {"floordiv": a.value // b.value, "floormod": a.value % b.value}.get(name)
            if value is not None:
                return Code(self.number(value), None, value)
        a, b, lanes = self.unify(a, b)
        if not is_integer(a.dtype):
            raise Unsupported(f"{name} of {a.dtype}")
        return Code(f"W_{a.dtype}(A.{name}({a.text}, {b.text}))", a.dtype, lanes=lanes)

    def compare(self, symbol, a, b):
        a, b, lanes = self.unify(a, b)
        return Code(f"({a.text} {symbol} {b.text})", "bool", lanes=lanes)

    def expr(self, e):
        match e:
            case ast.Constant(value=bool() as v):
                return Code(repr(v), "bool")
            case ast.Constant(value=int() | float() as v):
                return Code(self.number(v), None, v)
            case ast.Name(id=name):
                return self.variable(name)
            case ast.UnaryOp(op=ast.USub(), operand=x):
                code = self.expr(x)
                if code.dtype is None:
                    return Code(self.number(-code.value), None, -code.value)
                return self.arithmetic("*", code, Code("-1", None, -1))
            case ast.UnaryOp(op=ast.Not(), operand=x):
                code = self.condition(x)
                return Code(f"A.negation({code.text})", "bool", lanes=code.lanes)
            case ast.BinOp(op=op, left=left, right=right):
                a, b = self.expr(left), self.expr(right)
                if type(op) in ARITHMETIC:
                    return self.arithmetic(ARITHMETIC[type(op)], a, b)
                if type(op) in DIVISIONS:
                    return self.division(DIVISIONS[type(op)], a, b)
                if isinstance(op, ast.Div):
                    a, b, lanes = self.unify(a, b)
                    if not is_float(a.dtype):
                        raise Unsupported(f"`/` of {a.dtype}")
                    return Code(f"W_{a.dtype}(A.divide({a.text}, {b.text}))", a.dtype, lanes=lanes)
            case ast.BoolOp(op=op, values=values):
                function = "both" if isinstance(op, ast.And) else "either"
                codes = [self.condition(v) for v in values]
                text = codes[-1].text
                for code in reversed(codes[:-1]):
                    text = f"A.{function}({code.text}, lambda: {text})"
                return Code(text, "bool", lanes=max(c.lanes for c in codes))
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                parts, sides = [], [left, *comparators]
                for op, x, y in zip(ops, sides, sides[1:]):
                    parts.append(self.compare(COMPARE[type(op)], self.expr(x), self.expr(y)))
                text = parts[-1].text
                for part in reversed(parts[:-1]):
                    text = f"A.both({part.text}, lambda: {text})"
                return Code(text, "bool", lanes=max(p.lanes for p in parts))
            case ast.Subscript(value=ast.Name(id=name), slice=indices):
                return self.load(name, indices, e)
            case ast.Call():
                return self.call(e)
        raise Unsupported(f"expression: {ast.unparse(e)}")

    def variable(self, name):
        if name not in self.types:
            raise Unsupported(f"unknown name: {name}")
        dtype, lanes = self.types[name]
        return Code(f"v_{name}[lane]" if lanes > 1 else f"v_{name}", dtype, lanes=lanes)

    def indices(self, e):
        items = e.elts if isinstance(e, ast.Tuple) else [e]
        codes = [self.typed(i) for i in items]
        for code in codes:
            if not is_integer(code.dtype):
                raise Unsupported(f"an index of type {code.dtype}")
        return codes, max([c.lanes for c in codes], default=1)

    def buffer(self, name):
        if name not in self.buffers:
            raise Unsupported(f"unknown buffer: {name}")
        return self.buffers[name]

    def load(self, name, indices, e):
        dtype = self.buffer(name)
        codes, lanes = self.indices(indices)
        texts = [c.text for c in codes]
        if self.accumulator and self.accumulator[0] is e:
            texts.append(f"update={self.accumulator[1]!r}")
        return Code(f"v_{name}.load({', '.join(texts)})", dtype, lanes=lanes)

    def call(self, e):
        name = dotted(e.func)
        if name in DTYPES:
            if not e.args:
                raise Unsupported(f"T.{name}() in an expression")
            if isinstance(e.args[0], ast.Constant) and isinstance(e.args[0].value, str):
                return self.convert(Code("", None, float(e.args[0].value)), name)
            code = self.expr(e.args[0])
            if code.dtype is None:
                return self.convert(code, name)
            return self.conversion(code, name)
        args = e.args
        if name == "Cast":
            return self.conversion(self.typed(args[1]), string(args[0]))
        if name in ("if_then_else", "Select"):
            c = self.condition(args[0])
            a, b, lanes = self.unify(self.expr(args[1]), self.expr(args[2]))
            lanes = max(lanes, c.lanes)
            if name == "Select":
                return Code(f"A.select({c.text}, {a.text}, {b.text})", a.dtype, lanes=lanes)
            return Code(f"({a.text} if {c.text} else {b.text})", a.dtype, lanes=lanes)
        if name in ("min", "max"):
            function = {"min": "minimum", "max": "maximum"}[name]
            a, b, lanes = self.unify(self.expr(args[0]), self.expr(args[1]))
            return Code(f"A.{function}({a.text}, {b.text})", a.dtype, lanes=lanes)
        if name in DIVISION_CALLS:
            return self.division(DIVISION_CALLS[name], self.expr(args[0]), self.expr(args[1]))
        if name in COMPARE_CALLS:
            return self.compare(COMPARE_CALLS[name], self.expr(args[0]), self.expr(args[1]))
        if name == "likely":
            return self.condition(args[0])
        if name == "undef":
            return Code("ARBITRARY", string(keyword(e, "dtype", 0)))
        if name in ("min_value", "max_value"):
            dtype = string(args[0])
            if is_integer(dtype):
                return Code(repr(limits(dtype)[name == "max_value"]), dtype)
        if name == "infinity":
            return self.convert(Code("", None, float("inf")), string(args[0]))
        if name == "Let":
            return self.let(e)
        if name == "Ramp":
            base, stride, lanes = self.typed(args[0]), self.typed(args[1]), literal(args[2])
            base, stride, _ = self.unify(base, stride)
            text = f"W_{base.dtype}({base.text} + {stride.text} * lane)"
            return Code(text, base.dtype, lanes=lanes)
        if name == "Broadcast":
            code = self.typed(args[0])
            return Code(code.text, code.dtype, lanes=literal(args[1]))
        return self.intrinsic(name, args, e)

    def conversion(self, code, dtype):
        if dtype.rpartition("x")[0] in DTYPES:
            dtype = dtype.rpartition("x")[0]
        if dtype not in DTYPES or code.dtype not in DTYPES:
            raise Unsupported(f"cast of {code.dtype} to {dtype}")
        return Code(f'A.cast({code.text}, "{code.dtype}", "{dtype}")', dtype, lanes=code.lanes)

    def let(self, e):
        where = keyword(e, "where")
        if not isinstance(where, ast.Dict) or len(where.keys) != 1:
            raise Unsupported(ast.unparse(e))
        name = where.keys[0].id
        value = self.typed(where.values[0])
        if value.lanes > 1:
            raise Unsupported("a vector in T.Let")
        outer = self.types.get(name)
        self.types[name] = (value.dtype, 1)
        body = self.typed(e.args[0])
        if outer is None:
            del self.types[name]
        else:
            self.types[name] = outer
        return Code(f"(lambda v_{name}: {body.text})({value.text})", body.dtype, lanes=body.lanes)

    def intrinsic(self, name, args, e):
        codes = [self.expr(a) for a in args]
        known = next((c.dtype for c in codes if c.dtype is not None), "int32")
        codes = [self.convert(c, known) for c in codes]
        lanes = max([c.lanes for c in codes], default=1)
        texts = ", ".join(c.text for c in codes)
        if is_float(known) and name in TESTS:
            return Code(f'A.TESTS["{name}"]({texts})', "bool", lanes=lanes)
        if is_float(known) and name in FLOAT_FUNCTIONS:
            return Code(f'W_{known}(A.FLOAT_FUNCTIONS["{name}"]({texts}))', known, lanes=lanes)
        if known in DTYPES and not is_float(known) and integer_function(name, known):
            text = f'A.integer_function("{name}", "{known}")({texts})'
            return Code(f"W_{known}({text})", known, lanes=lanes)
        raise Unsupported(f"call: {ast.unparse(e)}")

    # Statements.

    def suite(self, body):
        self.indent += 1
        start = len(self.lines)
        for i, s in enumerate(body):
            self.statement(s)
        if len(self.lines) == start:
            self.line("pass")
        self.indent -= 1

    def statement(self, s):
        match s:
            case ast.Pass():
                return
            case ast.Expr(value=ast.Call() as call):
                return self.evaluate(call)
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=at)], value=value
            ):
                return self.store(s.targets[0], name, at, value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                dtype = dotted(annotation)
                if dtype not in DTYPES and dtype.rpartition("x")[0] not in DTYPES:
                    raise Unsupported(f"a binding of type {dtype}")
                return self.bind(name, value, dtype if dtype in DTYPES else None)
            case ast.Assign(targets=[target], value=value):
                return self.assign(target, value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.line(f"if {self.condition(test).text}:")
                self.suite(body)
                if orelse:
                    self.line("else:")
                    self.suite(orelse)
                return
            case ast.For():
                return self.loop(s)
            case ast.With(items=[item], body=body):
                return self.scope(item, body)
            case ast.Assert(test=test, msg=msg):
                # A message with values is a tuple of the text and the values.
                text = msg.elts[0] if isinstance(msg, ast.Tuple) else msg
                self.line(f"rt.check({self.condition(test).text}, {text and literal(text)!r})")
                return
        raise Unsupported(f"statement: {ast.unparse(s)}")

    def evaluate(self, call):
        name = dotted(call.func)
        if name in IGNORED:
            return
        if name == "assume":
            self.line(f"rt.assume({self.assumption(call.args[0])}, {ast.unparse(call)!r})")
        elif name == "evaluate":
            self.line(self.typed(call.args[0]).text)
        else:
            raise Unsupported(f"statement: {ast.unparse(call)}")

    def assumption(self, e):
        """The text of an assumed condition, in which `b[...] == T.undef()` permits reading."""
        if isinstance(e, ast.BoolOp):
            function = "both" if isinstance(e.op, ast.And) else "either"
            texts = [self.assumption(v) for v in e.values]
            text = texts[-1]
            for t in reversed(texts[:-1]):
                text = f"A.{function}({t}, lambda: {text})"
            return text
        if isinstance(e, ast.Compare) and len(e.ops) == 1 and isinstance(e.ops[0], ast.Eq):
            sides = [e.left, e.comparators[0]]
            for load, other in (sides, sides[::-1]):
                if is_call(other, "undef") and isinstance(load, ast.Subscript):
                    codes, _ = self.indices(load.slice)
                    self.buffer(load.value.id)
                    return f"v_{load.value.id}.permit({', '.join(c.text for c in codes)})"
                if isinstance(load, ast.Subscript) and isinstance(load.value, ast.Name):
                    # May be made true: see `Runtime.establish`.
                    value = self.typed(other, self.buffer(load.value.id))
                    codes, _ = self.indices(load.slice)
                    at = "".join(c.text + ", " for c in codes)
                    return f"rt.holds(v_{load.value.id}, ({at}), {value.text})"
        return self.condition(e).text

    def store(self, target, name, at, value):
        dtype = self.buffer(name)
        codes, lanes = self.indices(at)
        accumulator, update = update_of(target, value)
        self.accumulator = accumulator and (accumulator, update)
        code = self.of(value, dtype)
        self.accumulator = None
        update = update or self.initialised.get(name)
        lanes = max(lanes, code.lanes)
        at = "".join(c.text + ", " for c in codes)
        if lanes == 1:
            self.line(f"v_{name}.store(({at}), {code.text}, {update!r})")
        else:
            values = self.temporary()
            self.line(f"{values} = [{code.text} for lane in range({lanes})]")
            self.line(f"for lane in range({lanes}):")
            self.line(f"    v_{name}.store(({at}), {values}[lane], {update!r})")

    def bind(self, name, value, dtype):
        code = self.typed(value, dtype or "int32")
        if dtype is not None and code.dtype != dtype:
            raise Unsupported(f"a binding of type {dtype} to {code.dtype}")
        if code.lanes > 1:
            self.line(f"v_{name} = [{code.text} for lane in range({code.lanes})]")
        else:
            self.line(f"v_{name} = {code.text}")
        self.types[name] = (code.dtype, code.lanes)

    def assign(self, target, value):
        if is_call(value, "axis.remap"):
            return self.remap(target, value)
        if is_call(value, "axis.spatial", "axis.reduce", "axis.opaque"):
            return self.axis(target.id, value)
        if not isinstance(target, ast.Name):
            raise Unsupported(f"assignment to {ast.unparse(target)}")
        name = target.id
        if is_call(value, "alloc_buffer", "decl_buffer", "allocate_const", "match_buffer"):
            return self.declare(name, value)
        if is_call(value, *DTYPES) and not value.args:
            self.free[name] = dotted(value.func)
            self.types[name] = (self.free[name], 1)
            return None
        return self.bind(name, value, None)

    def remap(self, target, call):
        kinds = string(call.args[0])
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for kind, name, value in zip(kinds, names, call.args[1].elts, strict=True):
            code = self.typed(value)
            self.line(f"v_{name.id} = {code.text}")
            self.types[name.id] = (code.dtype, 1)
            self.axes.append((kind, name.id, self.loops[value.id]))

    def axis(self, name, call):
        domain, value = call.args
        code = self.expr(value)
        if isinstance(domain, ast.Tuple):
            low, high = (self.expr(e) for e in domain.elts)
        else:
            low, high = Code("0", None, 0), self.expr(domain)
        dtype = next((c.dtype for c in (code, low, high) if c.dtype is not None), "int32")
        code, low, high = (self.convert(c, dtype) for c in (code, low, high))
        first = self.temporary()
        self.line(f"v_{name}, {first} = {code.text}, {low.text}")
        # The predicate may say that values outside are not run.
        self.ranges.append((name, first, high.text))
        self.types[name] = (dtype, 1)
        kind = {"spatial": "S", "reduce": "R", "opaque": "O"}[call.func.attr]
        self.axes.append((kind, name, first))

    def extents(self, e):
        items = e.elts if isinstance(e, (ast.Tuple, ast.List)) else [e]
        codes = [self.typed(i) for i in items]
        return "(" + "".join(c.text + ", " for c in codes) + ")"

    def declare(self, name, call):
        """`name = T.alloc_buffer(...)` and its kin."""
        kind = dotted(call.func)
        if kind == "match_buffer":
            return self.view_of_region(name, call)
        if kind == "allocate_const":
            dtype = string(keyword(call, "dtype", 1))
            value, b64 = keyword(call, "data", 0), keyword(call, "b64")
            extents = literal(keyword(call, "extents", 2))
            if b64 is None:
                cells = f"rt.listed({literal_list(value)!r}, {dtype!r})"
            else:
                cells = f"rt.decoded({string(b64)!r}, {dtype!r})"
            self.line(f"v_{name} = rt.constant({name!r}, {dtype!r}, {tuple(extents)!r}, {cells})")
            self.buffers[name] = dtype
            return
        shape = self.extents(keyword(call, "shape", 0))
        dtype = keyword(call, "dtype", 1)
        dtype = string(dtype) if dtype is not None else "float32"
        strides, offset = self.layout(call)
        data = keyword(call, "data")
        if data is not None:
            source = data.value.id if isinstance(data, ast.Attribute) else data.id
            if self.buffer(source) != dtype:
                raise Unsupported(f"a view of {self.buffer(source)} as {dtype}")
            memory = f"v_{source}.memory"
            self.line(
                f"v_{name} = rt.view({name!r}, {dtype!r}, {memory}, {shape}, {strides}, {offset})"
            )
        else:
            self.line(f"v_{name} = rt.allocate({name!r}, {dtype!r}, {shape}, {strides}, {offset})")
        self.buffers[name] = dtype

    def layout(self, call):
        strides, offset = keyword(call, "strides"), keyword(call, "elem_offset")
        strides = "None" if strides is None or not strides.elts else self.extents(strides)
        return strides, "0" if offset is None else self.typed(offset).text

    def view_of_region(self, name, call):
        source = call.args[0]
        shape = self.extents(keyword(call, "shape", 1))
        dtype = keyword(call, "dtype", 2)
        dtype = string(dtype) if dtype is not None else "float32"
        if isinstance(source, ast.Name) and source.id in self.handles:
            strides, offset = self.layout(call)
            argument = self.handles[source.id]
            for axis, e in enumerate(call_items(keyword(call, "shape", 1))):
                if isinstance(e, ast.Name) and e.id in self.free:
                    self.line(f"v_{e.id} = rt.size({argument}, {axis})")
                    del self.free[e.id]
            self.line(
                f"v_{name} = rt.parameter({name!r}, {dtype!r}, {argument}, "
                f"{shape}, {strides}, {offset})"
            )
            self.buffers[name] = dtype
            return
        if not isinstance(source, ast.Subscript):
            raise Unsupported(ast.unparse(call))
        if keyword(call, "data") is not None or keyword(call, "strides") is not None:
            raise Unsupported(ast.unparse(call))
        if self.buffer(source.value.id) != dtype:
            raise Unsupported("a view of another type")
        origin = []
        for e in call_items(source.slice):
            low = (e.lower or ast.Constant(0)) if isinstance(e, ast.Slice) else e
            origin.append(self.typed(low).text + ", ")
        self.line(
            f"v_{name} = v_{source.value.id}.region("
            f"{name!r}, {dtype!r}, ({''.join(origin)}), {shape})"
        )
        self.buffers[name] = dtype

    def loop(self, s):
        call = s.iter
        kind = dotted(call.func)
        if kind == "grid":
            names = s.target.elts if isinstance(s.target, ast.Tuple) else [s.target]
            for name, extent in zip(names, call.args, strict=True):
                self.open_loop("serial", name.id, ast.Constant(0), extent)
            self.suite(s.body)
            for _ in names:
                self.close_loop()
            return
        low, high = (
            (call.args[0], call.args[1]) if len(call.args) > 1 else (ast.Constant(0), call.args[0])
        )
        if kind not in LOOPS and kind not in CONCURRENT:
            raise Unsupported(f"loop: {ast.unparse(call)}")
        self.open_loop(LOOPS.get(kind) or CONCURRENT[kind], s.target.id, low, high)
        self.suite(s.body)
        self.close_loop()

    def open_loop(self, kind, name, low, high):
        low, high = self.expr(low), self.expr(high)
        dtype = low.dtype or high.dtype or "int32"
        low, high = self.convert(low, dtype), self.convert(high, dtype)
        first = self.temporary()
        self.line(f"{first} = {low.text}")
        self.line(f"for v_{name} in rt.{kind}({first}, {high.text}, {name!r}):")
        self.indent += 1
        self.types[name] = (dtype, 1)
        self.loops[name] = first

    def close_loop(self):
        self.indent -= 1

    def scope(self, item, body):
        call = item.context_expr
        if is_call(call, "block", "sblock"):
            return self.block(body)
        if is_call(call, "LetStmt"):
            self.bind(item.optional_vars.id, call.args[0], None)
        elif is_call(call, "decl_buffer", "alloc_buffer", "allocate_const"):
            self.declare(item.optional_vars.id, call)
        else:
            raise Unsupported(f"scope: {ast.unparse(call)}")
        for s in body:
            self.statement(s)

    def block(self, body):
        outer = getattr(self, "axes", None), getattr(self, "ranges", None)
        self.axes, self.ranges = [], []
        depth = self.indent
        init, rest = None, []
        head = True
        for s in body:
            call = s.value if isinstance(s, (ast.Expr, ast.Assign)) else None
            if head and is_call(call, "axis.spatial", "axis.reduce", "axis.opaque", "axis.remap"):
                self.statement(s)
            elif head and isinstance(call, ast.Call) and dotted(call.func) == "where":
                self.line(f"if {self.condition(call.args[0]).text}:")
                self.indent += 1
            elif isinstance(s, ast.With) and is_call(s.items[0].context_expr, "init"):
                init = s.body
                rest.append(s)
            else:
                head = head and isinstance(call, ast.Call) and dotted(call.func) in IGNORED
                rest.append(s)
        for name, low, high in self.ranges:
            self.line(f"rt.axis({name!r}, v_{name}, {low}, {high})")
        firsts = [f"v_{name} == {first}" for kind, name, first in self.axes if kind == "R"]
        for s in rest:
            if isinstance(s, ast.With) and is_call(s.items[0].context_expr, "init"):
                self.line(f"if {' and '.join(firsts) or 'True'}:")
                outer_updates, self.initialised = self.initialised, updates(rest)
                self.suite(init)
                self.initialised = outer_updates
            else:
                self.statement(s)
        self.line("pass")
        self.indent = depth
        self.axes, self.ranges = outer

    # The function.

    def translate(self):
        d = self.definition
        parameters, arguments, names = [], [], []
        for p in d.args.args:
            annotation = p.annotation
            if is_call(annotation, "Buffer"):
                dtype = keyword(annotation, "dtype", 1)
                dtype = string(dtype) if dtype is not None else "float32"
                shape = self.extents(keyword(annotation, "shape", 0))
                strides, offset = self.layout(annotation)
                self.line(
                    f"v_{p.arg} = rt.parameter({p.arg!r}, {dtype!r}, a_{p.arg}, "
                    f"{shape}, {strides}, {offset})"
                )
                self.buffers[p.arg] = dtype
                parameters.append(("buffer", dtype, constants(keyword(annotation, "shape", 0))))
            elif dotted(annotation) == "handle":
                self.handles[p.arg] = f"a_{p.arg}"
                parameters.append(("buffer", None, None))
            elif dotted(annotation) in DTYPES:
                self.line(f"v_{p.arg} = a_{p.arg}")
                self.types[p.arg] = (dotted(annotation), 1)
                parameters.append(("scalar", dotted(annotation), None))
            else:
                raise Unsupported(f"parameter {ast.unparse(p)}")
            arguments.append(f"a_{p.arg}")
            names.append(p.arg)
        attributes = {}
        for s in d.body:
            if isinstance(s, ast.Expr) and is_call(s.value, "func_attr"):
                attributes = plain_attributes(s.value.args[0])
            self.statement(s)
        if self.free:
            raise Unsupported(f"sizes that no argument gives: {', '.join(self.free)}")
        self.line("pass")
        source = f"def function(rt, {', '.join(arguments)}):\n" + "\n".join(self.lines) + "\n"
        return Function(d.name, parameters, attributes, source, names=names)


def call_items(e):
    return e.elts if isinstance(e, (ast.Tuple, ast.List)) else [e]


def constants(e):
    """A tuple of constants, or `None`."""
    try:
        return tuple(literal(i) for i in call_items(e))
    except Unsupported:
        return None


def literal_list(e):
    """Nested lists of numbers, where `float("nan")` may stand among them."""
    if isinstance(e, (ast.List, ast.Tuple)):
        return [literal_list(x) for x in e.elts]
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "float":
        return Special(float(string(e.args[0])))
    return literal(e)


class Special(float):
    """A float whose text is Python: infinity or NaN."""

    def __repr__(self):
        return f'float("{float(self)}")'


def plain_attributes(e):
    """The attributes that are constants."""
    found = {}
    for key, value in zip(e.keys, e.values):
        try:
            found[ast.literal_eval(key)] = ast.literal_eval(value)
        except ValueError:
            pass
    return found


OPERATORS = {ast.Add: "+", ast.Sub: "+", ast.Mult: "*", ast.And: "and", ast.Or: "or"}
OPERATOR_CALLS = {"min", "max", "bitwise_and", "bitwise_or", "bitwise_xor"}


def update_of(target, value):
    """The load and the name of an update `b[i] = b[i] op x`, where a store is one."""
    match value:
        case ast.BinOp(op=ast.Sub(), left=left):
            operator, operands = "+", [left]
        case ast.BinOp(op=op, left=left, right=right) if type(op) in OPERATORS:
            operator, operands = OPERATORS[type(op)], [left, right]
        case ast.BoolOp(op=op, values=[left, right]):
            operator, operands = OPERATORS[type(op)], [left, right]
        case ast.Call(args=[left, right]) if dotted(value.func) in OPERATOR_CALLS:
            operator, operands = dotted(value.func), [left, right]
        case _:
            return None, None
    at = ast.unparse(target)
    load = next((e for e in operands if ast.unparse(e) == at), None)
    return load, load and f"{target.value.id} {operator}"


def updates(body):
    """The updates among statements, by their buffers."""
    found = {}
    for s in body:
        for node in ast.walk(s):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                _, update = update_of(node.targets[0], node.value)
                if update:
                    found[node.targets[0].value.id] = update
    return found
