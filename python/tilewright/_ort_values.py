"""Values of ONNX Runtime: arrays with its names for their types, and what is bound to a session's names."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import Array
from .errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from .onnxruntime import InferenceSession

__all__ = ["IOBinding", "OrtDevice", "OrtValue", "element_name", "element_number", "element_type", "type_name"]

_NAMES = {
    "float32": "float",
    "float64": "double",
    "str": "string",
    "object": "string",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
}

#: The numbers of element types in ONNX.
_NUMBERS = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
}

#: Element types that NumPy has by the package `ml_dtypes` only.
_OTHERS = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


def element_name(number: int) -> str:
    """What ONNX Runtime calls the element type of a number of ONNX."""
    if number == 8:
        return "string"
    names = [name for name, own in _NUMBERS.items() if own == number]
    return _NAMES.get(names[0], names[0]) if names else str(number)


def element_number(dtype: np.dtype[Any]) -> int:
    """The number of an element type in ONNX.

    Raises:
        tilewright.UnsupportedError: for one that ONNX does not have.
    """
    if dtype.name not in _NUMBERS:
        raise UnsupportedError(f"elements of {dtype}")
    return _NUMBERS[dtype.name]


def element_type(name: str) -> np.dtype[Any] | None:
    """The element type that ONNX Runtime calls by this name; ``None`` where NumPy has none here."""
    names = [own for own in _NUMBERS if _NAMES.get(own, own) == name]
    try:
        return _element_type(_NUMBERS[names[0]]) if names else None
    except ImportError:
        return None


def type_name(dtype: str) -> str:
    """What ONNX Runtime calls a tensor of an element type: ``tensor(float)``."""
    return f"tensor({_NAMES.get(dtype, dtype)})"


def _element_type(given: Any) -> np.dtype[Any]:
    """The element type that NumPy, or a number of ONNX, says."""
    if isinstance(given, int) and not isinstance(given, bool):
        names = [name for name, number in _NUMBERS.items() if number == given]
        if not names:
            raise UnsupportedError(f"there are no arrays of the element type {given} of ONNX")
        given = names[0]
    if isinstance(given, str) and given in _OTHERS:
        import ml_dtypes

        given = getattr(ml_dtypes, given)
    made: np.dtype[Any] = np.dtype(given)
    return made


def _on_cpu(device_type: str, device_id: int = 0) -> None:
    if str(device_type).lower() != "cpu" or device_id != 0:
        raise UnsupportedError(f"the device {device_type}:{device_id}: there is only the CPU")


class OrtDevice:
    """Where a value is: the CPU, with number 0. Anything else raises :class:`UnsupportedError`."""

    def __init__(self, device_type: int = 0, memory_type: int = 0, device_id: int = 0) -> None:
        if (device_type, memory_type, device_id) != (0, 0, 0):
            raise UnsupportedError(f"device {device_id} of kind {device_type}: there is only the CPU")

    @staticmethod
    def make(ort_device_name: str, device_id: int = 0) -> OrtDevice:
        """A device by its name."""
        _on_cpu(ort_device_name, device_id)
        return OrtDevice()

    @staticmethod
    def cpu() -> int:
        """The number of the kind of a CPU."""
        return 0

    @staticmethod
    def cuda() -> int:
        """The number of the kind of a GPU of NVIDIA, which no value is on."""
        return 1

    @staticmethod
    def dml() -> int:
        """The number of the kind of a GPU of Windows, which no value is on."""
        return 4

    @staticmethod
    def default_memory() -> int:
        """The number of plain memory."""
        return 0

    def device_type(self) -> str:
        """The kind: ``cpu``."""
        return "cpu"

    def device_id(self) -> int:
        """The number among those of its kind."""
        return 0


class OrtValue:
    """A value of ONNX Runtime: an array, a list of arrays, or nothing."""

    def __init__(self, value: Any) -> None:
        """Used by this module: see :meth:`ortvalue_from_numpy`."""
        self._value = value

    @property
    def _array(self) -> np.ndarray[Any, Any]:
        """The array of a tensor."""
        if not isinstance(self._value, np.ndarray):
            raise InputError("this value is no tensor")
        return self._value

    @classmethod
    def ortvalue_from_numpy(cls, array: Array, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """The memory of an array, or of a copy where its elements do not lie in order.

        Raises:
            tilewright.UnsupportedError: for arrays of strings, as in ONNX Runtime.
        """
        _on_cpu(device_type, device_id)
        made = np.ascontiguousarray(array).reshape(np.shape(array))
        element_number(made.dtype)
        return cls(made)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, onnx_element_type: int) -> OrtValue:
        """The memory of an array under a type of ONNX, by its number, whose elements have as many bytes."""
        array = np.ascontiguousarray(data)
        dtype = _element_type(onnx_element_type)
        if dtype.itemsize != array.dtype.itemsize:
            raise InputError(f"elements of {array.dtype} are not those of {dtype}")
        return cls(array.view(dtype).reshape(np.shape(data)))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Memory that nothing was written to."""
        _on_cpu(device_type, device_id)
        return cls(np.empty([int(d) for d in shape], _element_type(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any) -> OrtValue:
        """The memory of anything with DLPack."""
        return cls(np.from_dlpack(data))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        made: np.ndarray[Any, Any] = self._array if dtype is None else self._array.astype(dtype, copy=False)
        return made.copy() if copy and made is self._array else made

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy as an array."""
        copy: np.ndarray[Any, Any] = self._array.copy()
        return copy

    def update_inplace(self, data: Array) -> None:
        """Writes other elements of the same shape and type.

        Raises:
            tilewright.InputError: if they do not fit.
        """
        given = np.asarray(data)
        if given.shape != self._array.shape or given.dtype != self._array.dtype:
            raise InputError(f"{given.dtype}{list(given.shape)} is not {self._array.dtype}{self.shape()}")
        np.copyto(self._array, given)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array.ctypes.data)

    def device_name(self) -> str:
        """The device: ``cpu``."""
        return "cpu"

    def shape(self) -> list[int]:
        """The extents."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """The type as ONNX Runtime calls it: ``tensor(float)``."""
        if isinstance(self._value, list):
            return f"seq({OrtValue(self._value[0]).data_type()})" if self._value else "seq()"
        return type_name(self._array.dtype.name)

    def element_type(self) -> int:
        """The number of the element type in ONNX."""
        return 8 if self._array.dtype.kind == "O" else element_number(self._array.dtype)

    def tensor_size_in_bytes(self) -> int:
        """The bytes of all elements."""
        return self._array.nbytes

    def has_value(self) -> bool:
        """Whether there is a value: an optional may have none."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Whether it is a sparse tensor: never."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence."""
        return isinstance(self._value, list)


def _at(address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The array at an address, which the caller keeps alive."""
    count = int(np.prod([int(d) for d in shape], dtype=np.int64)) * dtype.itemsize
    memory: Any = (ctypes.c_char * count).from_address(address)
    made: np.ndarray[Any, Any] = np.frombuffer(memory, dtype).reshape(shape)
    return made


class IOBinding:
    """What a session reads and writes, bound to its names before it runs."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        #: The array that an output is written into; ``None`` for a new one at each run.
        self._outputs: dict[str, np.ndarray[Any, Any] | None] = {}
        self._results: dict[str, OrtValue] = {}

    def _bind(self, name: str, value: Any) -> None:
        if name not in [port.name for port in self._session.get_inputs()]:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        self._inputs[name] = value

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Binds an array, which is read at each run."""
        self._bind(name, arr_on_cpu)

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Binds what lies at an address."""
        _on_cpu(device_type, device_id)
        self._bind(name, _at(buffer_ptr, _element_type(element_type), shape))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value, which is read at each run."""
        self._bind(name, ortvalue._value)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output to an address, or to an array that each run makes."""
        _on_cpu(device_type, device_id)
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        if element_type is None or shape is None:
            raise InputError(f"the memory of output `{name}` needs an element type and a shape")
        self._outputs[name] = _at(buffer_ptr, _element_type(element_type), shape)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value that is written at each run."""
        self._outputs[name] = ortvalue._array

    def synchronize_inputs(self) -> None:
        """Waits for copies to devices: there are none."""

    def synchronize_outputs(self) -> None:
        """Waits for copies from devices: there are none."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results.values())

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run as arrays; lists of them for sequences."""
        return [value.numpy() if value.is_tensor() else value._value for value in self._results.values()]

    def clear_binding_inputs(self) -> None:
        """Forgets what is bound to inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets what is bound to outputs."""
        self._outputs.clear()
        self._results.clear()

    def _run(self, run: Any) -> None:
        """Runs with a function that takes names of outputs, a feed, and memory for outputs by name."""
        if not self._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        names = list(self._outputs)
        results = dict(zip(names, run(names, self._inputs, self._outputs)))
        for name, result in results.items():
            memory = self._outputs[name]
            if memory is None:
                continue
            if not isinstance(result, np.ndarray):
                raise InputError(f"output `{name}` is no tensor, and memory is bound to it")
            if memory.shape != result.shape or memory.dtype != result.dtype:
                given, made = (f"{x.dtype}{list(x.shape)}" for x in (memory, result))
                raise InputError(f"the memory for output `{name}` is {given}, and the output is {made}")
        self._results = {}
        for name, result in results.items():
            memory = self._outputs[name]
            if memory is not None and result is not memory:
                np.copyto(memory, result)
            self._results[name] = OrtValue(result if memory is None else memory)
