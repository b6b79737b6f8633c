"""Operators in ONNX that PyTorch's exporter lacks, or makes more of than there is."""

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
        torch.ops.aten.mkldnn_rnn_layer.default: lstm_layer,
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


def lstm_layer(
    x: Any,
    weight: Any,
    recurrent: Any,
    bias: Any,
    recurrent_bias: Any,
    hidden: Any,
    cell: Any,
    reverse: bool,
    batch_sizes: Sequence[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> Any:
    """One layer of an LSTM in one direction, which is what PyTorch takes others apart into."""
    is_lstm = mode == 2
    if not is_lstm or train or bidirectional or batch_first or num_layers != 1 or batch_sizes:
        raise NotImplementedError("a recurrent layer of another kind")

    def ordered(gates: Any) -> Any:
        """The gates in the order of ONNX, with an axis of directions."""
        enter, forget, new, leave = op.Split(gates, num_outputs=4, axis=0)
        return op.Unsqueeze(op.Concat(enter, leave, forget, new, axis=0), op.Constant(value_ints=[0]))

    both = op.Concat(ordered(bias), ordered(recurrent_bias), axis=1) if has_biases else None
    made, last, last_cell = op.LSTM(
        x,
        ordered(weight),
        ordered(recurrent),
        both,
        None,
        hidden,
        cell,
        hidden_size=hidden_size,
        direction="reverse" if reverse else "forward",
    )
    made = op.Squeeze(made, op.Constant(value_ints=[1]))
    # What training would keep is empty.
    return made, last, last_cell, op.Constant(value_floats=[0.0])
