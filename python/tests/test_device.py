"""Tensors that stay in memory of a device."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import tilewright as tw

SOURCE = """
@T.prim_func
def f(A: T.Buffer((33, 7), "float32"), B: T.Buffer((33, 7), "float32"), C: T.Buffer((33, 7), "float32")):
    for i, j in T.grid(33, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2) + B[vi, vj]
"""


@pytest.fixture(scope="module")
def executable() -> tw.Executable:
    try:
        return tw.parse(SOURCE).compile(target="opencl")
    except tw.Error as error:
        pytest.skip(f"there is no device: {error}")


def arrays() -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(1)
    return [generator.standard_normal((33, 7)).astype("float32") for _ in range(2)]


def test_results_stay_on_the_device_and_are_read_there(executable: tw.Executable) -> None:
    a, b = arrays()
    first = executable.on_device(a, B=b)
    assert isinstance(first, tw.DeviceTensor)
    assert (first.shape, first.dtype) == ((33, 7), "float32")
    second = executable.on_device(first, first)
    np.testing.assert_array_equal(first.numpy(), a * 2 + b)
    np.testing.assert_array_equal(second.numpy(), (a * 2 + b) * 2 + (a * 2 + b))
    # On the host and on the device, and the other way around.
    np.testing.assert_array_equal(executable.on_device(second, b).numpy(), executable(second.numpy(), b))


class Other:
    """A tensor of another library in the same memory."""

    def __init__(self, tensor: tw.DeviceTensor) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream: int | None = None) -> Any:
        return self.tensor.__dlpack__(stream=stream)


def test_tensors_of_others_come_by_dlpack(executable: tw.Executable) -> None:
    a, b = arrays()
    tensor = executable.on_device(a, b)
    expected = (a * 2 + b) * 2 + b
    other = Other(tensor)
    del tensor
    for _ in range(3):
        np.testing.assert_array_equal(executable.on_device(other, b).numpy(), expected)
    # A capsule that nobody takes, and one that outlives what it was asked of.
    capsule = other.__dlpack__()
    del other
    gc.collect()
    assert "dltensor" in repr(capsule)


def test_what_does_not_fit_is_an_error(executable: tw.Executable) -> None:
    a, b = arrays()
    tensor = executable.on_device(a, b)
    with pytest.raises(tw.InputError, match="shape"):
        executable.on_device(tensor, b[:, :3])
    with pytest.raises(tw.InputError, match="not in memory that the CPU can read"):
        executable(tensor, b)
    native = tw.parse(SOURCE).compile()
    with pytest.raises(tw.InputError, match="runs on the processor"):
        native.on_device(a, b)
