from __future__ import annotations

import warnings

import numpy as np
import pytest
import tilewright

torch = pytest.importorskip("torch", exc_type=ImportError)
pytest.importorskip("onnxscript")


class Network(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 13, 3)
        self.linear = torch.nn.Linear(13 * 36, 7)

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = torch.relu(self.convolution(x))
        return torch.softmax(self.linear(y.flatten(1)), dim=1)


def test_torch_compile_runs_the_graph_natively() -> None:
    torch.manual_seed(0)
    network = Network().eval()
    compiled = torch.compile(network, backend="tilewright")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="tilewright: .*")
        for n in (2, 5):
            x = torch.rand(n, 3, 8, 8)
            np.testing.assert_allclose(compiled(x).numpy(), network(x).numpy(), rtol=1e-4, atol=1e-6)


def test_tensors_of_torch_are_shared() -> None:
    exe = tilewright.te.func(
        [a := tilewright.te.placeholder("A", (6,))],
        [tilewright.te.compute("B", (6,), lambda i: a[i] * 2)],
    )
    x = torch.arange(6, dtype=torch.float32)
    assert tilewright._native.address(x) == x.data_ptr()
    y = torch.from_dlpack(exe(x))
    assert y.tolist() == (2 * x).tolist()
    assert torch.from_dlpack(exe(x.to(torch.float32)[::1])).shape == (6,)
