from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest
import tilewright
from conftest import elementwise

TYPES = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bool"),
]


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_goes_in_and_comes_out(dtype: str) -> None:
    exe = tilewright.parse(elementwise(dtype)).compile(threads=1)
    x = np.array([0, 1, 2, 3, 4, 5]).astype(dtype)
    y = exe(x)
    assert y.dtype == x.dtype
    assert (y == x).all()


def test_bfloat16_goes_in_and_comes_out() -> None:
    types = pytest.importorskip("ml_dtypes")
    exe = tilewright.parse(elementwise("bfloat16")).compile(threads=1)
    x = np.array([0, 1.5, -2, 3, 4, 5]).astype(types.bfloat16)
    y = exe(x)
    assert y.dtype == x.dtype
    assert (y == x).all()


class Recorder:
    """An array that is only known by DLPack, and says what happens to it."""

    def __init__(self, array: np.ndarray[Any, Any], device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def test_dlpack_goes_in_and_comes_out() -> None:
    exe = tilewright.parse(elementwise("float32")).compile(threads=1)
    x = np.arange(6, dtype=np.float32)
    y = exe(Recorder(x))
    assert (y == x).all()
    assert (np.from_dlpack(y) == x).all()
    strided = np.arange(12, dtype=np.float32)[::2]
    assert (exe(Recorder(strided)) == strided).all()
    with pytest.raises(tilewright.InputError, match="not in memory that the CPU can read"):
        exe(Recorder(x, device=2))


def test_an_array_of_dlpack_is_given_back_after_the_run() -> None:
    exe = tilewright.parse(elementwise("float32")).compile(threads=1)
    x = np.arange(6, dtype=np.float32)
    alive = weakref.ref(x)
    exe(Recorder(x))
    del x
    gc.collect()
    assert alive() is None


def test_inputs_and_outputs_are_not_copied() -> None:
    """A view of the very memory of an input is seen by the run; an output keeps its address."""
    module = tilewright.parse(elementwise("float32", 1 << 20, "A[vi] + T.float32(1)"))
    exe = module.compile(threads=1)
    x = np.zeros(1 << 20, np.float32)
    given = tilewright._native.address(x)
    assert given == x.ctypes.data
    # Aligned to an element only.
    raw = np.zeros((1 << 20) * 4 + 64, np.uint8)
    shift = -raw.ctypes.data % 64 + 4
    odd = raw[shift : shift + (1 << 22)].view(np.float32)
    assert odd.ctypes.data % 64 == 4
    assert tilewright._native.address(odd) == odd.ctypes.data
    assert (exe(odd) == 1).all()
    # What cannot be read in place is copied.
    for other in (x[::2], np.zeros((4, 5), np.float32).T, raw[1:5].view(np.float32), x.astype(">f4")):
        assert tilewright._native.address(other) != other.ctypes.data
    y = exe(x)
    assert y.flags.owndata is False
    assert y.flags.writeable
    assert y.ctypes.data % 64 == 0
    before = y.ctypes.data
    y += 1
    assert y.ctypes.data == before
    again = np.from_dlpack(y)
    assert again.ctypes.data == before


def test_an_output_keeps_its_memory() -> None:
    exe = tilewright.parse(elementwise("float32", 1 << 16)).compile(threads=1)
    kept = [exe(np.full(1 << 16, k, np.float32))[7:9] for k in range(20)]
    exe.close()
    del exe
    gc.collect()
    assert [float(part[0]) for part in kept] == list(range(20))


def test_what_is_not_laid_out_in_order_gives_the_same() -> None:
    exe = tilewright.parse(elementwise("int32")).compile(threads=1)
    x = np.arange(12, dtype=np.int32)
    big = x[:6].astype(">i4")
    assert (exe(x[::2]) == x[::2]).all()
    assert (exe(x[5::-1]) == x[5::-1]).all()
    assert (exe(big) == x[:6]).all()
    frozen = x[:6].copy()
    frozen.flags.writeable = False
    assert (exe(frozen) == x[:6]).all()
    buffer = ctypes.create_string_buffer(x[:6].tobytes())
    assert (exe(np.frombuffer(memoryview(buffer), np.int32, 6)) == x[:6]).all()


def test_lists_take_the_type_of_the_input() -> None:
    exe = tilewright.parse(elementwise("float32")).compile(threads=1)
    y = exe([1, 2, 3, 4, 5, 6])
    assert y.dtype == np.float32
    assert y.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(6), "input `A` has elements of type float32, and was given float64"),
        (np.zeros(5, np.float32), r"input `A` has the shape \[6\], and was given \[5\]"),
        (np.zeros(6, np.complex64), "input `A` has elements of type complex64"),
        (np.array(["a"] * 6), "input `A` has elements of type <U1"),
    ],
)
def test_arrays_that_do_not_fit_are_errors(x: Any, message: str) -> None:
    exe = tilewright.parse(elementwise("float32")).compile(threads=1)
    with pytest.raises(tilewright.InputError, match=message):
        exe(x)


def test_arrays_of_jax_go_in_and_come_out(digits: str) -> None:
    jax = pytest.importorskip("jax")
    exe = tilewright.load(digits).compile()
    x = np.random.default_rng(0).random((3, 1, 8, 8), dtype=np.float32)
    logits, _ = exe(jax.numpy.asarray(x))
    assert (np.asarray(jax.dlpack.from_dlpack(logits)) == exe(x)[0]).all()


def test_arrays_of_jax_are_shared(digits: str) -> None:
    pytest.importorskip("jax")
    import jax.numpy as jnp

    exe = tilewright.load(digits, dims={"N": 2}).compile()
    x = jnp.ones((2, 1, 8, 8), jnp.float32)
    assert tilewright._native.address(x) == x.unsafe_buffer_pointer()
    logits, _ = exe(x)
    assert (logits == exe(np.ones((2, 1, 8, 8), np.float32))[0]).all()
    assert jnp.from_dlpack(logits).tolist() == logits.tolist()
    # They never change.
    with pytest.raises(tilewright.InputError, match="cannot be written"):
        exe(x, out=(jnp.zeros((2, 10)), jnp.zeros((2, 10))))
