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


def contractions(model, inputs):
    """Useful operations and bytes of constant weights of every contraction; those whose shapes are not known are left out."""
    known = shapes(model, inputs)
    weights = {w.name: len(w.raw_data) or 4 * math.prod(w.dims) for w in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "MatMulNBits" and node.input[0] in known:
            sizes = {a.name: a.i for a in node.attribute}
            rows = math.prod(known[node.input[0]][:-1])
            packed = sum(weights.get(name, 0) for name in node.input[1:4])
            yield 2 * rows * sizes["K"] * sizes["N"], packed
            continue
        operands = [known.get(name) for name in [*node.input[:2], node.output[0]]]
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or None in operands:
            continue
        left, right, result = operands
        if node.op_type == "Conv":
            count = math.prod(result) * math.prod(right[1:])
        elif node.op_type == "ConvTranspose":
            count = math.prod(left) * math.prod(right[1:])
        else:
            transposed = any(a.name == "transA" and a.i for a in node.attribute)
            count = math.prod(result) * (left[0] if transposed else left[-1])
        yield 2 * count, weights.get(node.input[1], 0)


def flops(model, inputs):
    """Useful operations of one inference."""
    return sum(count for count, _ in contractions(model, inputs))


def floor(model, inputs, peak, rate, cache):
    """Seconds below which no inference can be that computes every product of its contractions.

    Each takes as long as its operations at the peak, or as its weights at the rate at which memory is
    read, where those of the model together are larger than the cache and come from there every time.
    """
    every = list(contractions(model, inputs))
    far = sum(weights for _, weights in every) > cache
    return sum(max(count / peak, weights / rate if far else 0.0) for count, weights in every)
