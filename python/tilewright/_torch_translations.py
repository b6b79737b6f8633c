"""Operators in ONNX where PyTorch's exporter makes more of them than there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import torch
from onnxscript import opset18 as op

__all__ = ["table"]


def table() -> dict[Any, Callable[..., Any]]:
    """The translations, by operator."""
    return {
        torch.ops.aten.max_pool2d_with_indices.default: max_pool2d_with_indices,
        torch.ops.aten.max_pool3d_with_indices.default: max_pool3d_with_indices,
    }


def max_pool2d_with_indices(
    x: Any,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
) -> Any:
    """Maxima, and where they are in their channel."""
    return _max_pool(2, x, kernel, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    x: Any,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0, 0),
    dilation: Sequence[int] = (1, 1, 1),
    ceil_mode: bool = False,
) -> Any:
    """Maxima, and where they are in their channel."""
    return _max_pool(3, x, kernel, stride, padding, dilation, ceil_mode)


def _max_pool(
    count: int,
    x: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Any:
    def each(values: Sequence[int]) -> list[int]:
        return list(values) if len(values) == count else [values[0]] * count

    rank = len(x.shape)
    samples = op.Unsqueeze(x, op.Constant(value_ints=[0])) if rank == count + 1 else x
    maxima, places = op.MaxPool(
        samples,
        kernel_shape=each(kernel),
        strides=each(stride or kernel),
        pads=each(padding) * 2,
        dilations=each(dilation),
        ceil_mode=int(ceil_mode),
    )
    # ONNX counts through the whole tensor, PyTorch through a channel.
    channel = op.ReduceProd(op.Shape(samples, start=2), keepdims=0)
    places = op.Mod(places, channel)
    if rank == count + 1:
        first = op.Constant(value_ints=[0])
        return op.Squeeze(maxima, first), op.Squeeze(places, first)
    return maxima, places
