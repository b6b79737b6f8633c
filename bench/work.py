"""How much arithmetic a model is: additions and multiplications of its contractions."""

import math

import onnx


def shapes(model, inputs):
    """Name to shape of every value whose shape is known for inputs of these shapes."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for value in model.graph.input:
        if value.name in inputs:
            dims = value.type.tensor_type.shape
            dims.ClearField("dim")
            for size in inputs[value.name]:
                dims.dim.add().dim_value = size
    # What an earlier run of shape inference wrote may be for other sizes.
    del model.graph.value_info[:]
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    found = {w.name: tuple(w.dims) for w in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        kind = value.type.tensor_type
        dims = [d.dim_value for d in kind.shape.dim]
        if kind.HasField("shape") and all(dims):
            found.setdefault(value.name, tuple(dims))
    return found


def flops(model, inputs):
    """Useful operations of one inference; contractions whose shapes are not known are left out."""
    known, total = shapes(model, inputs), 0
    for node in model.graph.node:
        operands = [known.get(name) for name in [*node.input[:2], node.output[0]]]
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or None in operands:
            continue
        left, right, result = operands
        if node.op_type == "Conv":
            total += 2 * math.prod(result) * math.prod(right[1:])
        elif node.op_type == "ConvTranspose":
            total += 2 * math.prod(left) * math.prod(right[1:])
        else:
            transposed = any(a.name == "transA" and a.i for a in node.attribute)
            total += 2 * math.prod(result) * (left[0] if transposed else left[-1])
    return total
