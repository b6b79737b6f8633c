"""ONNX's backend interface: ``prepare``, ``run_model`` and ``run_node``.

ONNX's own backend test suite runs against it::

    import onnx.backend.test
    import tilewright.onnx_backend as backend

    suite = onnx.backend.test.BackendTest(backend, __name__)

It needs the package ``onnx``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from .errors import Error, UnsupportedError
from .onnxruntime import InferenceSession, SessionOptions

__all__ = [
    "TilewrightBackend",
    "TilewrightRep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]


class TilewrightRep(BackendRep):  # type: ignore[misc]
    """A model that is ready to run."""

    def __init__(self, model: onnx.ModelProto) -> None:
        initial = {tensor.name for tensor in model.graph.initializer}
        self._names = [i.name for i in model.graph.input if i.name not in initial]
        self._types = [_narrow(output) for output in model.graph.output]
        self._session = InferenceSession(model.SerializeToString())

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs on inputs in order, or by name."""
        if isinstance(inputs, dict):
            feed = inputs
        else:
            listed = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            feed = dict(zip(self._names, listed))
        results = self._session.run(None, feed)
        return tuple(_as_type(x, dtype) for x, dtype in zip(results, self._types))


def _narrow(output: onnx.ValueInfoProto) -> np.dtype[Any] | None:
    """The type of an output whose elements the compiler gives as bytes, where it is declared."""
    code = output.type.tensor_type.elem_type
    if code in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        return None
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
    is_plain = dtype in (np.uint8, np.int8, np.bool_)
    return dtype if dtype.itemsize == 1 and not is_plain else None


def _as_type(x: Any, dtype: np.dtype[Any] | None) -> Any:
    """Bytes as narrow elements: integers by their values, floats by their bits."""
    if dtype is None or not isinstance(x, np.ndarray) or x.dtype not in (np.uint8, np.int8):
        return x
    return x.astype(dtype) if "int" in dtype.name else x.view(dtype)


class TilewrightBackend(Backend):  # type: ignore[misc]
    """Tilewright as a backend of ONNX."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be read at all."""
        options = SessionOptions()
        options.add_session_config_entry("tilewright.compile", "first_run")
        try:
            InferenceSession(model.SerializeToString(), options)
        except Error:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> TilewrightRep:
        """A model that is ready to run: an ``onnx.ModelProto``, or the path of a file with all its weights.

        Raises:
            tilewright.Error: those of reading it.
        """
        if not cls.supports_device(device):
            raise UnsupportedError(f"the device {device}: there is only the CPU")
        if isinstance(model, (str, os.PathLike)):
            model = onnx.load(model)
        super().prepare(model, device, **kwargs)
        return TilewrightRep(model)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[Any],
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one node on inputs in order.

        Raises:
            tilewright.Error: those of reading and running it.
        """
        arrays = [np.asarray(x) for x in inputs]

        def info(name: str, dtype: Any, shape: Sequence[int] | None) -> onnx.ValueInfoProto:
            code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            return onnx.helper.make_tensor_value_info(name, code, shape)

        names = [name for name in node.input if name]
        given = [info(n, x.dtype, x.shape) for n, x in zip(names, arrays)]
        made = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        if outputs_info is not None:
            made = [info(n, dtype, shape) for n, (dtype, shape) in zip(node.output, outputs_info)]
        graph = onnx.helper.make_graph([node], "node", given, made)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        opsets = [onnx.helper.make_opsetid("", opset)]
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        if outputs_info is None:
            model = onnx.shape_inference.infer_shapes(model)
        return cls.prepare(model, device).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is a device: the CPU is."""
        return device.split(":")[0] == "CPU"


is_compatible = TilewrightBackend.is_compatible
prepare = TilewrightBackend.prepare
run_model = TilewrightBackend.run_model
run_node = TilewrightBackend.run_node
supports_device = TilewrightBackend.supports_device
