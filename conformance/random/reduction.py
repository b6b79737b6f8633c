"""Makes a failing case smaller: statements and guards go while the same sort of error stays."""

import ast
import copy

import oracle
import tool
from memory import Unsupported

TRIES = 150


def reduce(failure, folder, program, timeout):
    """A smaller module that still fails in the same way, and what is wrong there."""
    recipe = failure["recipe"]
    message = failure["message"]
    graph = "@R.function" in failure["text"]
    if graph or recipe["seed"] is None or "layouts" in recipe or "arrays" in recipe:
        return failure["text"], message
    test = Test(failure, folder, program, timeout)
    text = failure["text"]
    first = test.wrong(text)
    if first is None:
        return text, message + "\n(not seen again on the module alone)"
    best, message = text, first
    changed = True
    while changed and test.left > 0:
        changed = False
        for candidate in candidates(best):
            if test.left <= 0:
                break
            found = test.wrong(candidate)
            if found is not None:
                best, message, changed = candidate, found, True
                break
    return best, message


class Test:
    def __init__(self, failure, folder, program, timeout):
        self.failure, self.folder = failure, folder
        self.program, self.timeout = program, timeout
        self.left = TRIES

    def wrong(self, text):
        """What is wrong with what the program makes of this module, if it is the same sort."""
        import cases

        self.left -= 1
        recipe = self.failure["recipe"]
        status, what, sort = self.failure["sort"].split(": ", 2)
        try:
            references = cases.References(text, recipe["seed"])
        except (Unsupported, KeyError, SyntaxError):
            return None
        if not references.all:
            return None
        module = self.folder / "candidate.py"
        module.write_text(text)
        trace = self.folder / "trace.py"
        if "trace" in recipe:
            trace.write_text(recipe["trace"])
        arguments = cases.filled(recipe["arguments"], {"module": module, "trace": trace})
        answer = tool.run(self.program, arguments, timeout=self.timeout)
        module.unlink()
        if answer.status != "ok":
            same = answer.status == status and answer.reason() == sort
            return answer.err if same else None
        if status != "wrong":
            return None
        schedule = "trace" in recipe
        tolerance = cases.TOLERANCE if schedule else 0.0
        try:
            found = references.failure(
                answer.out, permissive="T.undef(" in text, tolerance=tolerance, copies=schedule
            )
        except (Unsupported, KeyError, oracle.Illegal):
            return None
        return found.message if found and found.kind == sort else None


def bodies(tree):
    """Every list of statements."""
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield node, name, body


def candidates(text):
    """Smaller texts, the largest cuts first."""
    tree = ast.parse(text)
    places = []
    for index, (node, name, body) in enumerate(bodies(tree)):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            continue
        for k, s in enumerate(body):
            if isinstance(s, ast.Return):
                continue
            size = len(ast.unparse(s))
            places.append((size, index, k, "drop"))
            if isinstance(s, ast.If):
                places.append((size // 2, index, k, "body"))
    for size, index, k, how in sorted(places, reverse=True):
        smaller = copy.deepcopy(tree)
        node, name, body = list(bodies(smaller))[index]
        s = body[k]
        if how == "drop":
            body[k : k + 1] = []
            if not body and name == "body":
                continue
        else:
            body[k : k + 1] = s.body
        yield ast.unparse(smaller) + "\n"
    yield from simpler_values(tree)


def simpler_values(tree):
    """An operand in the place of an operation."""
    count = sum(isinstance(n, (ast.BinOp, ast.Call)) for n in ast.walk(tree))
    for index in range(count):
        for side in (0, 1, 2):
            smaller = copy.deepcopy(tree)
            if _replace(smaller, index, side):
                yield ast.unparse(smaller) + "\n"


def _replace(tree, index, side):
    seen = -1
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            items = value if isinstance(value, list) else [value]
            for k, e in enumerate(items):
                if not isinstance(e, (ast.BinOp, ast.Call)):
                    continue
                seen += 1
                if seen != index:
                    continue
                if isinstance(e, ast.BinOp):
                    parts = [e.left, e.right]
                elif ast.unparse(e.func) in ("T.if_then_else", "T.Select", "T.min", "T.max"):
                    parts = e.args[-2:]
                else:
                    return False
                if side >= len(parts):
                    return False
                if isinstance(value, list):
                    value[k] = parts[side]
                else:
                    setattr(node, field, parts[side])
                return True
    return False
