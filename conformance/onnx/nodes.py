"""ONNX's own node cases: small models with inputs and expected outputs.

The `onnx` package generates them (`onnx.backend.test.case.node`). A case is selected
if every operator in its graph is claimed by the program, at the case's opset. Each
becomes a folder under `.work/nodes`, with the model and its tensors as `.npz`, so that
a failing one can be run by hand.
"""

import fnmatch
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import environment
import harness

# The element types that an .npz can hold.
NPZ_TYPES = {
    getattr(TensorProto, name)
    for name in (
        "BOOL FLOAT16 FLOAT DOUBLE INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64"
    ).split()
}
# Types that the program keeps as bytes: integers as their values, floats as their bits.
NARROW_TYPES = {
    getattr(TensorProto, name)
    for name in (
        "FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0 FLOAT4E2M1 "
        "UINT4 INT4 UINT2 INT2"
    ).split()
}
CLASSES = {
    "float32/int64": {TensorProto.FLOAT, TensorProto.INT64},
    "... and bool": {TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL},
}
OTHER = "other types"
# One unit in the last place of a bfloat16: what another order of roundings may change.
BFLOAT16_RTOL = 2.0**-7


@dataclass
class NodeCase:
    """One case, with its tensors by name."""

    name: str
    model: onnx.ModelProto
    inputs: dict
    outputs: dict
    rtol: float
    atol: float
    operators: list  # with their domain, unless that is ONNX's own
    types: str  # one of CLASSES, or OTHER


@dataclass
class Result:
    """What became of a case. `status` is one of STATUSES."""

    name: str
    types: str
    operators: list
    status: str
    reason: str = ""


STATUSES = {
    "pass": "passed",
    "wider": "passed within a wider tolerance, as tolerances.txt says",
    "refused": "refused with a diagnostic",
    "failed": "wrong output, crash or timeout",
    "excepted": "did not pass, as exceptions.txt says",
    "stale": "passed although exceptions.txt lists it",
    "skipped": "has values that hold no tensors",
}
BAD = ("refused", "failed", "stale")


def claimed_operators(text):
    """Reads `NAME MIN_OPSET MAX_OPSET` lines; a missing bound is no bound."""
    claimed = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        bounds = [int(word) for word in words[1:3] if word.isdigit()]
        if len(bounds) != len(words) - 1:
            raise ValueError(f"line {number}: expected NAME MIN_OPSET MAX_OPSET, found {line!r}")
        low, high = (bounds + [1, 10**6][len(bounds) :])[:2]
        claimed[words[0]] = (low, high)
    return claimed


def read_exceptions(text):
    """Reads `PATTERN reason` lines into a list of pairs."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pattern, _, reason = line.strip().partition(" ")
        if not reason.strip():
            raise ValueError(f"line {number}: {pattern} has no reason")
        found.append((pattern, reason.strip()))
    return found


def read_tolerances(text):
    """Reads `PATTERN RTOL ATOL reason` lines into a list of (pattern, rtol, atol)."""
    found = []
    for pattern, rest in read_exceptions(text):
        rtol, atol, *reason = rest.split(maxsplit=2)
        if not reason:
            raise ValueError(f"{pattern} has no reason")
        found.append((pattern, float(rtol), float(atol)))
    return found


def operator_name(node):
    """The operator as the program names it: with its domain, unless that is ONNX's own."""
    own = node.domain in ("", "ai.onnx")
    return node.op_type if own else f"{node.domain}.{node.op_type}"


def opset_of(model, domain=""):
    """The version of a domain that a model is written in."""
    names = ("", "ai.onnx") if domain in ("", "ai.onnx") else (domain,)
    return max((o.version for o in model.opset_import if o.domain in names), default=0)


def rejected(model, claimed):
    """Why a case is not selected, or an empty text."""
    for node in model.graph.node:
        name = operator_name(node)
        if name not in claimed:
            return "operator not claimed"
        low, high = claimed[name]
        if not low <= opset_of(model, node.domain) <= high:
            return "opset not claimed"
    return ""


def tensor_type(ty):
    """The type of the tensors in a sequence or an optional, or None where it holds something else."""
    kind = ty.WhichOneof("value")
    while kind in ("sequence_type", "optional_type"):
        ty = getattr(ty, kind).elem_type
        kind = ty.WhichOneof("value")
    return ty.tensor_type if kind == "tensor_type" else None


def element_types(model):
    """The element types of inputs and outputs, or None where one holds no tensors."""
    found = set()
    for value in [*model.graph.input, *model.graph.output]:
        tensor = tensor_type(value.type)
        if tensor is None:
            return None
        found.add(tensor.elem_type)
    return found


def class_of(types):
    if types is not None:
        for name, allowed in CLASSES.items():
            if types <= allowed:
                return name
    return OTHER


def tensors(value, given):
    """The tensors that stand for a value: those of a sequence are `NAME.0`, `NAME.1`, ..., and an
    optional that has no value has none."""
    if given is None:
        return {}
    if isinstance(given, (list, tuple)):
        return {f"{value.name}.{k}": in_npz(x) for k, x in enumerate(given)}
    return {value.name: in_npz(given)}


def all_tensors(values, given):
    """The tensors of several values."""
    parts = (tensors(v, x) for v, x in zip(values, given, strict=True))
    return {name: array for part in parts for name, array in part.items()}


def as_array(value):
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def in_npz(value):
    """The tensor in a type that an .npz can hold: bfloat16 as float32, which has all its values,
    narrow integers as bytes of their values, narrow floats as their bits, and strings as their bytes
    along one more axis."""
    array = as_array(value)
    name = array.dtype.name
    if array.dtype.kind in "OUT":
        encoded = np.ascontiguousarray(np.char.encode(array.astype(np.str_), "utf-8"))
        width = max(encoded.dtype.itemsize, 1)
        return np.frombuffer(encoded.tobytes(), np.uint8).reshape(*array.shape, width)
    if name == "bfloat16":
        return array.astype(np.float32)
    if name.startswith(("int2", "int4")):
        return array.astype(np.int8)
    if name.startswith(("uint2", "uint4")):
        return array.astype(np.uint8)
    if name.startswith("float4"):
        return array.view(np.uint8) & 0xF
    return array.view(np.uint8) if name.startswith("float8") else array


def without_bfloat16(model):
    """The model with float32 in the place of bfloat16 inputs and outputs, and casts behind them."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph, nodes = changed.graph, []
    renamed = {}
    for side, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            tensor = value.type.tensor_type
            if tensor.elem_type != TensorProto.BFLOAT16:
                continue
            tensor.elem_type = TensorProto.FLOAT
            inner = renamed.setdefault(value.name, value.name + "/bfloat16")
            if side == "input":
                nodes.append(
                    onnx.helper.make_node("Cast", [value.name], [inner], to=TensorProto.BFLOAT16)
                )
            else:
                nodes.append(onnx.helper.make_node("Cast", [inner], [value.name], to=TensorProto.FLOAT))
    body = list(graph.node)
    for node in body:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    before = [node for node in nodes if node.attribute[0].i == TensorProto.BFLOAT16]
    after = [node for node in nodes if node.attribute[0].i == TensorProto.FLOAT]
    del graph.node[:]
    graph.node.extend([*before, *body, *after])
    return changed


def generate():
    """All node cases of the installed `onnx`, as it defines them."""
    from onnx.backend.test.loader import load_node_model_tests

    np.random.seed(0)  # the cases draw from the global generator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases overflow on purpose
        return load_node_model_tests()


def collect(claimed, only=""):
    """The selected cases, the results of skipped ones, and why others were left out."""
    selected, skipped, left_out = [], [], {}
    for case in sorted(generate(), key=lambda case: case.name):
        if only not in case.name:
            continue
        why = rejected(case.model, claimed)
        if why:
            left_out[why] = left_out.get(why, 0) + 1
            continue
        operators = sorted({operator_name(node) for node in case.model.graph.node})
        types = element_types(case.model)
        model = case.model
        if types is not None and TensorProto.BFLOAT16 in types:
            model = without_bfloat16(model)
        held = NPZ_TYPES | NARROW_TYPES | {TensorProto.BFLOAT16, TensorProto.STRING}
        if types is None or not types <= held:
            names = ["no tensors"]
            if types is not None:
                names = sorted(TensorProto.DataType.Name(t) for t in types - held)
            reason = "type: " + ", ".join(names)
            skipped.append(Result(case.name, class_of(types), operators, "skipped", reason))
            continue
        for inputs, outputs in case.data_sets:
            graph = case.model.graph
            selected.append(
                NodeCase(
                    case.name,
                    model,
                    all_tensors(graph.input, inputs),
                    all_tensors(graph.output, outputs),
                    max(case.rtol, BFLOAT16_RTOL) if model is not case.model else case.rtol,
                    case.atol,
                    operators,
                    class_of(types),
                )
            )
    return selected, skipped, left_out


def attempt(program, case, timeout, options=()):
    """Writes a case to its folder and runs it. Returns a status and a reason."""
    folder = environment.WORK / "nodes" / case.name
    folder.mkdir(parents=True, exist_ok=True)
    model, inputs = folder / "model.onnx", folder / "in.npz"
    model.write_bytes(case.model.SerializeToString())
    harness.save_npz(folder / "expected.npz", case.outputs)
    if case.inputs:
        harness.save_npz(inputs, case.inputs)
    given = inputs if case.inputs else None
    outcome = harness.run(program, model, given, threads=1, timeout=timeout, options=options)
    if outcome.status != "ok":
        return ("refused" if outcome.status == "refused" else "failed"), outcome.reason
    problem = harness.missing_or_extra(outcome.outputs, case.outputs)
    if problem:
        return "failed", problem
    for name, expected in case.outputs.items():
        found = harness.difference(outcome.outputs[name], expected, case.rtol, case.atol)
        if found.problem:
            return "failed", f"{name}: {found.problem}"
    return "pass", ""


def judge(program, case, exceptions, timeout, tolerances=(), options=()):
    """The result of one case."""
    wider = next((t for t in tolerances if fnmatch.fnmatchcase(case.name, t[0])), None)
    if wider:
        case = replace(case, rtol=max(case.rtol, wider[1]), atol=max(case.atol, wider[2]))
    status, reason = attempt(program, case, timeout, options)
    if wider and status == "pass":
        status = "wider"
    for pattern, why in exceptions:
        if fnmatch.fnmatchcase(case.name, pattern):
            passed = status in ("pass", "wider")
            status, reason = ("stale", f"listed as: {why}") if passed else ("excepted", why)
            break
    return Result(case.name, case.types, case.operators, status, reason)


def run_all(program, cases, exceptions, jobs, timeout, progress, tolerances=(), options=()):
    """Runs the cases, `jobs` at a time; `progress(done, total, result)` after each."""
    results = []
    with ThreadPoolExecutor(jobs) as pool:
        pending = [
            pool.submit(judge, program, case, exceptions, timeout, tolerances, options) for case in cases
        ]
        for done, future in enumerate(pending, 1):
            results.append(future.result())
            progress(done, len(cases), results[-1])
    return results


def similar(reason):
    """A reason without the names and numbers that differ from case to case."""
    text = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\S*/\S*", "_", reason)
    return re.sub(r"-?\b\d[\d.e+-]*", "#", text)[:110]


def count(results, key):
    """Rows of `key` against status, most cases first, and a last row of totals."""
    groups = {}
    for result in results:
        for group in key(result):
            row = groups.setdefault(group, dict.fromkeys(STATUSES, 0))
            row[result.status] += 1
    rows = sorted(groups.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    return [[group, sum(row.values()), *row.values()] for group, row in rows]


def report(results, left_out):
    """The tables as text."""
    header = ["", "cases", *STATUSES]
    parts = []
    total = ["all", len(results)]
    total += [sum(result.status == status for result in results) for status in STATUSES]
    by_class = count(results, lambda result: [result.types])
    parts.append(harness.table(["by type", *header[1:]], [*by_class, total]))
    by_operator = count(results, lambda result: result.operators)
    imperfect = [row for row in by_operator if row[1] != row[2] + row[3]]
    if imperfect:
        columns = ["operator (not all passed)", *header[1:]]
        parts.append(harness.table(columns, imperfect))
    for status in ("failed", "refused", "stale", "excepted", "skipped"):
        groups = {}
        for result in results:
            if result.status == status:
                groups.setdefault(similar(result.reason), []).append(result)
        if groups:
            lines = [f"{status}: {STATUSES[status]}"]
            for _, members in sorted(groups.items(), key=lambda item: -len(item[1])):
                names = ", ".join(result.name for result in members[:3])
                more = f" and {len(members) - 3} more" if len(members) > 3 else ""
                lines.append(f"  {len(members):4}  {members[0].reason}\n        {names}{more}")
            parts.append("\n".join(lines))
    if left_out:
        said = ", ".join(f"{why}: {number}" for why, number in sorted(left_out.items()))
        parts.append(f"not selected: {said}")
    return "\n\n".join(parts)


def as_json(results, left_out):
    totals = {status: sum(r.status == status for r in results) for status in STATUSES}
    return {"totals": totals, "not_selected": left_out, "cases": [asdict(r) for r in results]}
