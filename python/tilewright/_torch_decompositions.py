"""Operators that PyTorch's ONNX exporter lacks or gets wrong, in operators that it exports.

They are gradients that PyTorch does not take apart itself, normalization by the statistics of a batch,
which the exporter takes for that by running statistics, and what PyTorch has in one piece.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Callable

import torch
from torch._decomp import decomposition_table, get_decompositions

aten = torch.ops.aten

__all__ = ["table"]


def table() -> dict[Any, Callable[..., Any]]:
    """The decompositions, by operator."""
    normalizations = [
        aten.native_batch_norm.default,
        aten._native_batch_norm_legit.default,
        aten._native_batch_norm_legit.no_stats,
        aten._native_batch_norm_legit_functional.default,
    ]
    known = get_decompositions(normalizations)
    gradients = [op for op in decomposition_table if "backward" in str(op)]
    return {
        **{op: decomposition_table[op] for op in gradients},
        **{op: functools.partial(_by_batch, op, known[op]) for op in normalizations if op in known},
        aten.native_dropout.default: dropout,
        aten._transformer_encoder_layer_fwd.default: encoder_layer,
        aten.convolution_backward.default: convolution_backward,
        aten.max_pool2d_with_indices_backward.default: functools.partial(max_pool_backward, 2),
        aten.max_pool3d_with_indices_backward.default: functools.partial(max_pool_backward, 3),
        aten.avg_pool2d_backward.default: functools.partial(avg_pool_backward, 2),
        aten.avg_pool3d_backward.default: functools.partial(avg_pool_backward, 3),
        aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool_backward,
    }


def _by_batch(op: Any, decomposition: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Takes a normalization apart that uses the statistics of the batch."""
    names = [argument.name for argument in op._schema.arguments]
    given = {**dict(zip(names, args)), **kwargs}
    return decomposition(*args, **kwargs) if given["training"] else NotImplemented


def dropout(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """Dropout by random numbers that only the shape decides, as PyTorch draws them."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    mask = aten.bernoulli.p(torch.empty_like(x, dtype=torch.bool), 1 - p)
    return x * mask.to(x.dtype) * (1 / (1 - p)), mask


def encoder_layer(
    x: Any,
    width: int,
    heads: int,
    mixed: Any,
    mixed_bias: Any,
    out: Any,
    out_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm: Any,
    norm_bias: Any,
    second_norm: Any,
    second_norm_bias: Any,
    wide: Any,
    wide_bias: Any,
    narrow: Any,
    narrow_bias: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """A layer of an encoder, which PyTorch has in one piece where there are no gradients."""
    if mask is not None or x.is_nested:
        return NotImplemented
    functional = torch.nn.functional

    def attended(y: Any) -> Any:
        q, k, v = functional.linear(y, mixed, mixed_bias).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        weight = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * (width // heads) ** -0.5, -1)
        return functional.linear(torch.matmul(weight, v).transpose(1, 2).flatten(2), out, out_bias)

    def fed(y: Any) -> Any:
        y = functional.linear(y, wide, wide_bias)
        y = functional.gelu(y) if use_gelu else torch.relu(y)
        return functional.linear(y, narrow, narrow_bias)

    def first(y: Any) -> Any:
        return functional.layer_norm(y, (width,), norm, norm_bias, eps)

    def second(y: Any) -> Any:
        return functional.layer_norm(y, (width,), second_norm, second_norm_bias, eps)

    if norm_first:
        x = x + attended(first(x))
        return x + fed(second(x))
    x = first(x + attended(x))
    return second(x + fed(x))


def _each(values: Sequence[int], count: int) -> list[int]:
    """One number an axis, of which there may be one for all."""
    return list(values) if len(values) == count else [values[0]] * count


def convolution_backward(
    grad: Any,
    x: Any,
    weight: Any,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The gradients of a convolution by input, weight and bias, as convolutions."""
    count = x.dim() - 2
    stride, padding, dilation = (_each(v, count) for v in (stride, padding, dilation))
    of_x = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_x = aten.convolution.default(
            grad, weight, None, stride, padding, dilation, False, [0] * count, groups
        )
    elif output_mask[0]:
        # What a step of more than one leaves over at the end.
        over = [
            x.shape[2 + k]
            - (
                (grad.shape[2 + k] - 1) * stride[k]
                - 2 * padding[k]
                + dilation[k] * (weight.shape[2 + k] - 1)
                + 1
            )
            for k in range(count)
        ]
        of_x = aten.convolution.default(grad, weight, None, stride, padding, dilation, True, over, groups)
    if output_mask[1]:
        extents = weight.shape[2:]
        # A transposed convolution is the gradient of a plain one: the two tensors change places.
        inner, outer = (grad, x) if transposed else (x, grad)
        of_weight = _by_weight(inner, outer, extents, stride, padding, dilation, groups)
    if output_mask[2]:
        of_bias = grad.sum([0, *range(2, grad.dim())])
    return of_x, of_weight, of_bias


def _by_weight(
    inner: Any,
    outer: Any,
    extents: Sequence[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Any:
    """The gradient by the weight: samples are channels, and channels are samples."""
    samples, channels = inner.shape[:2]
    results = outer.shape[1]
    count = len(extents)
    spatial = inner.shape[2:]
    # One group of the convolution holds the samples of one group of channels.
    inner = inner.reshape(samples, groups, channels // groups, *spatial)
    inner = inner.permute(2, 1, 0, *range(3, 3 + count)).reshape(channels // groups, groups * samples, *spatial)
    outer = outer.transpose(0, 1)
    made = aten.convolution.default(inner, outer, None, dilation, padding, stride, False, [0] * count, groups)
    for axis, extent in enumerate(extents):
        made = made.narrow(2 + axis, 0, extent)
    return made.transpose(0, 1).reshape(results, channels // groups, *extents)


def max_pool_backward(count: int, grad: Any, x: Any, *geometry: Any) -> Any:
    """The gradient of a maximum goes to where it was found."""
    indices = geometry[-1]
    flat = x.shape[:-count]
    size = math.prod(x.shape[-count:])
    zeros = torch.zeros([*flat, size], dtype=grad.dtype)
    added = zeros.scatter_add(-1, indices.reshape([*flat, -1]), grad.reshape([*flat, -1]))
    return added.reshape(x.shape)


def avg_pool_backward(
    count: int,
    grad: Any,
    x: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """The gradient of a mean: every element of a window gets its part."""
    kernel = _each(kernel, count)
    stride = _each(stride, count) if stride else kernel
    padding = _each(padding, count)
    extents = x.shape[-count:]
    channels = x.shape[-count - 1]
    part = grad
    for axis in range(count):
        if divisor_override is not None:
            break
        counts = _counts(
            extents[axis],
            grad.shape[axis - count],
            kernel[axis],
            stride[axis],
            padding[axis],
            count_include_pad,
        )
        shape = [1] * grad.dim()
        shape[axis - count] = grad.shape[axis - count]
        part = part / counts.to(grad.dtype).reshape(shape)
    if divisor_override is not None:
        part = part / divisor_override
    part = part.reshape(-1, channels, *grad.shape[-count:])
    ones = torch.ones([channels, 1, *kernel], dtype=grad.dtype)
    zeros, steps = [0] * count, [1] * count
    spread = aten.convolution.default(part, ones, None, stride, zeros, steps, True, zeros, channels)
    for axis in range(count):
        # The padding in front goes, and behind there may be too much or too little.
        whole = padding[axis] + extents[axis]
        if spread.shape[2 + axis] < whole:
            more = [0, 0] * (count - 1 - axis) + [0, whole - spread.shape[2 + axis]]
            spread = aten.constant_pad_nd.default(spread, more)
        spread = spread.narrow(2 + axis, padding[axis], extents[axis])
    return spread.reshape(x.shape)


def _counts(extent: Any, outputs: Any, kernel: int, stride: int, padding: int, is_padding_counted: bool) -> Any:
    """How many positions of an axis each window counts."""
    start = torch.arange(outputs) * stride - padding
    end = (start + kernel).clamp(max=extent + padding)
    if is_padding_counted:
        return end - start
    return end.clamp(max=extent) - start.clamp(min=0)


def adaptive_avg_pool_backward(grad: Any, x: Any) -> Any:
    """The gradient of means of parts that may overlap: products with what each part takes."""
    height, width = (_shares(x.shape[-2 + axis], grad.shape[-2 + axis], grad.dtype) for axis in range(2))
    return torch.matmul(torch.matmul(height.transpose(0, 1), grad), width)


def _shares(extent: Any, outputs: Any, dtype: torch.dtype) -> Any:
    """For each output of an axis what each position counts in its mean."""
    output, position = torch.arange(outputs).unsqueeze(1), torch.arange(extent)
    start = torch.div(output * extent, outputs, rounding_mode="floor")
    end = torch.div((output + 1) * extent + outputs - 1, outputs, rounding_mode="floor")
    inside = (position >= start) & (position < end)
    return inside.to(dtype) / (end - start).to(dtype)
