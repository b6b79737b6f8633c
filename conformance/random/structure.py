"""What a schedule can name in a printed function: blocks with the loops and buffers around them."""

import ast
from dataclasses import dataclass, field

from translate import call_items, constants, dotted, is_call, keyword, string


@dataclass
class Loop:
    name: str
    extent: int | None
    kind: str


@dataclass
class Block:
    name: str
    loops: list
    kinds: str = ""
    reads: list = field(default_factory=list)
    writes: list = field(default_factory=list)
    has_init: bool = False
    has_if: bool = False
    inner: int = 0  # loops in the block
    nest: int = 0  # which of the statements of the function it is in
    reduced: set = field(default_factory=set)  # names of the loops that it reduces over


@dataclass
class Structure:
    blocks: list
    shapes: dict  # buffer -> shape or None
    dtypes: dict
    parameters: list

    def producers(self, block):
        """Blocks that write what a block reads, of buffers that no caller sees."""
        return [
            b
            for b in self.blocks
            if b is not block
            and any(w in block.reads for w in b.writes if w not in self.parameters)
        ]

    def consumers(self, block):
        return [b for b in self.blocks if block in self.producers(b)]


def names_in(e):
    return {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}


def structure(text, name="main"):
    """The structure of a tensor function in a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return _Reader().function(node)
    return None


class _Reader:
    def __init__(self):
        self.found = Structure([], {}, {}, [])

    def function(self, node):
        for p in node.args.args:
            if is_call(p.annotation, "Buffer"):
                self.buffer(p.arg, p.annotation, 0)
                self.found.parameters.append(p.arg)
        for self.nest, s in enumerate(node.body):
            self.statement(s, [], None)
        for b in self.found.blocks:
            b.reads = list(dict.fromkeys(b.reads))
            b.writes = list(dict.fromkeys(b.writes))
        return self.found

    def buffer(self, name, call, position):
        shape, dtype = keyword(call, "shape", position), keyword(call, "dtype", position + 1)
        self.found.shapes[name] = constants(shape)
        self.found.dtypes[name] = string(dtype) if dtype is not None else "float32"

    def suite(self, body, loops, block):
        for s in body:
            self.statement(s, loops, block)

    def statement(self, s, loops, block):
        match s:
            case ast.For(target=target, iter=call, body=body):
                kind = dotted(call.func)
                names = call_items(target)
                if kind == "grid":
                    extents = [constants(e) for e in call.args]
                elif len(call.args) == 1:
                    extents = [constants(call.args[0])]
                else:
                    ends = constants(ast.Tuple(elts=call.args[:2]))
                    extents = [(ends[1] - ends[0],) if ends else None]
                if block:
                    block.inner += len(names)
                opened = [Loop(n.id, e[0] if e else None, kind) for n, e in zip(names, extents)]
                self.suite(body, loops + opened, block)
            case ast.With(items=[item], body=body) if is_call(item.context_expr, "block"):
                inner = Block(string(item.context_expr.args[0]), loops, nest=self.nest)
                self.found.blocks.append(inner)
                self.suite(body, [], inner)
            case ast.With(items=[item], body=body) if is_call(item.context_expr, "init"):
                block.has_init = True
                self.suite(body, loops, block)
            case ast.With(items=[item], body=body):
                self.suite(body, loops, block)
            case ast.If(test=test, body=body, orelse=orelse):
                if block:
                    block.has_if = True
                self.expression(test, block)
                self.suite(body, loops, block)
                self.suite(orelse, loops, block)
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=at)], value=value
            ):
                if block:
                    block.writes.append(name)
                self.expression(at, block)
                self.expression(value, block)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if is_call(
                call, "alloc_buffer", "decl_buffer"
            ):
                self.buffer(name, call, 0)
            case ast.Assign(value=value) if is_call(value, "axis.remap"):
                kinds = string(value.args[0])
                block.kinds += kinds
                for kind, loop in zip(kinds, value.args[1].elts):
                    block.reduced |= names_in(loop) if kind == "R" else set()
            case ast.Assign(value=value) if is_call(value, "axis.spatial", "axis.opaque"):
                block.kinds += "S"
            case ast.Assign(value=value) if is_call(value, "axis.reduce"):
                block.kinds += "R"
                block.reduced |= names_in(value.args[1])
            case ast.Assign(value=value) | ast.AnnAssign(value=value):
                self.expression(value, block)

    def expression(self, e, block):
        for node in ast.walk(e):
            if block and is_call(node, "if_then_else"):
                block.has_if = True
            if block and isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                block.reads.append(node.value.id)
