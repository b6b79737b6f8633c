"""The backend of ``torch.compile``: values, weights and gradients are those of PyTorch without it."""

from __future__ import annotations

import copy
import importlib.util
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tilewright

torch = pytest.importorskip("torch", exc_type=ImportError)
pytest.importorskip("onnxscript")

from tilewright import _torch_translations, torch_backend  # noqa: E402

nn = torch.nn


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many inputs each graph has that was compiled; none may be left to PyTorch."""
    made: list[int] = []

    class Counted(torch_backend._Native):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(len(self._taken))

    monkeypatch.setattr(torch_backend, "_Native", Counted)
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="tilewright: .*")
        yield made
    torch._dynamo.reset()


def close(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


def compiled(module: Any, **options: Any) -> Any:
    return torch.compile(module, backend="tilewright", options=options or None)


class Network(nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
        self.norm = nn.BatchNorm2d(6)
        self.linear = nn.Linear(54, 7)

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = torch.relu(self.norm(self.convolution(x)))
        y = nn.functional.max_pool2d(y, 2)
        return torch.softmax(self.linear(y.flatten(1)), dim=1)


def test_other_sizes_are_one_compilation_more(native: list[int]) -> None:
    model = nn.Sequential(nn.Linear(5, 3), nn.Tanh())
    fast = compiled(model)
    with torch.no_grad():
        for n in (2, 5, 7, 9):
            x = torch.rand(n, 5)
            close(fast(x), model(x))
    assert native == [3, 3]


def test_a_size_that_is_marked_is_open_at_once(native: list[int]) -> None:
    fast = compiled(nn.Sequential(nn.Linear(5, 3), nn.ReLU()))
    with torch.no_grad():
        for n in (4, 6, 9):
            x = torch.rand(n, 5)
            torch._dynamo.mark_dynamic(x, 0)
            close(fast(x), fast._orig_mod(x))
    assert native == [3]


def test_weights_that_change_are_seen(native: list[int]) -> None:
    model, x = nn.Linear(5, 3), torch.randn(2, 5)
    fast = compiled(model)
    with torch.no_grad():
        close(fast(x), model(x))
        model.weight.add_(1)
        close(fast(x), model(x))
        model.load_state_dict({k: v * 2 for k, v in model.state_dict().items()})
        close(fast(x), model(x))
        model.weight.data = torch.ones_like(model.weight)
        close(fast(x), model(x))
        # Nothing counts this one.
        model.weight.data.mul_(3)
        close(fast(x), model(x))
        model.weight = nn.Parameter(torch.randn(3, 5))
        close(fast(x), model(x))
    assert native == [3]
    model.double()
    with torch.no_grad():
        close(fast(x.double()), model(x.double()))


def test_tied_weights_and_graph_breaks(native: list[int]) -> None:
    class Tied(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(5, 5)
            self.second = nn.Linear(5, 5)
            self.second.weight = self.first.weight

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = torch.tanh(self.first(x))
            torch._dynamo.graph_break()
            return self.second(y)

    model = Tied()
    twin, x = copy.deepcopy(model), torch.randn(3, 5)
    fast = compiled(model)
    fast(x).square().sum().backward()
    twin(x).square().sum().backward()
    for p, q in zip(model.parameters(), twin.parameters()):
        close(p.grad, q.grad)
    with torch.no_grad():
        model.first.weight.mul_(2)
        close(fast(x), model(x))


def test_training_gives_the_same_weights(native: list[int]) -> None:
    model = Network()
    twin = copy.deepcopy(model)
    fast = compiled(model)
    one, two = (torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (model, twin))
    for _ in range(4):
        x, wanted = torch.randn(5, 4, 11, 11), torch.randint(7, (5,))
        for optimizer, network in ((one, fast), (two, twin)):
            optimizer.zero_grad()
            nn.functional.nll_loss(network(x).log(), wanted).backward()
            optimizer.step()
    for (name, p), q in zip(model.state_dict().items(), twin.state_dict().values()):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-3, atol=1e-5, err_msg=name)
    assert model.norm.num_batches_tracked == 4
    # Forward and backward, each once.
    assert len(native) == 2


def test_part_of_an_eager_model_has_gradients(native: list[int]) -> None:
    inner, outer = nn.Linear(5, 3), nn.Linear(3, 1)
    fast = compiled(nn.Sequential(inner, nn.Tanh()))
    x = torch.randn(2, 5, requires_grad=True)
    outer(fast(x)).sum().backward()
    got = [inner.weight.grad, inner.bias.grad, x.grad]
    inner.zero_grad()
    x.grad = None
    outer(torch.tanh(inner(x))).sum().backward()
    for g, e in zip(got, [inner.weight.grad, inner.bias.grad, x.grad]):
        close(g, e)


def test_some_weights_without_gradients_and_detached_values(native: list[int]) -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    model[0].weight.requires_grad_(False)

    def loss(network: Any, x: Any) -> Any:
        y = network(x)
        return (y * y.detach()).sum()

    x = torch.randn(2, 5)
    torch.compile(loss, backend="tilewright")(model, x).backward()
    got = [p.grad for p in model.parameters()]
    model.zero_grad()
    loss(model, x).backward()
    assert got[0] is None
    for g, p in zip(got[1:], list(model.parameters())[1:]):
        close(g, p.grad)


def test_views_and_writes_of_inputs(native: list[int]) -> None:
    def write(x: Any) -> Any:
        x.mul_(2)
        y = x[1:]
        y.add_(1)
        return x.t(), x.sum()

    x = torch.randn(3, 4)
    twin = x.clone()
    t, total = torch.compile(write, backend="tilewright")(x)
    u, expected = write(twin)
    close(x, twin)
    close(t, u)
    close(total, expected)
    assert t.stride() == u.stride()
    # What is a view of an input stays one.
    t.add_(1)
    u.add_(1)
    close(x, twin)


def test_a_second_derivative_is_an_error_and_no_wrong_value(native: list[int]) -> None:
    fast = torch.compile(lambda x: (x**3).sum(), backend="tilewright")
    x = torch.randn(4, requires_grad=True)
    (first,) = torch.autograd.grad(fast(x), x, create_graph=True)
    close(first, 3 * x**2)
    with pytest.raises(RuntimeError, match="double backward"):
        first.sum().backward()


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), (2, 4, 5, 6)),
        (lambda: nn.Conv1d(3, 4, 3, stride=3, dilation=2), (2, 3, 15)),
        (lambda: nn.Conv3d(2, 3, 2, padding=1), (1, 2, 4, 3, 5)),
        (lambda: nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True), (1, 2, 6, 9)),
        (lambda: nn.AvgPool2d(2, stride=3, count_include_pad=False), (1, 2, 6, 9)),
        (lambda: nn.AdaptiveAvgPool2d((3, 2)), (2, 3, 7, 5)),
        (lambda: nn.MaxPool2d(3, stride=2, padding=1), (1, 3, 9, 8)),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
        (lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.GELU(), nn.Upsample(scale_factor=2)), (2, 4, 3, 5)),
    ],
)
def test_gradients_of_layers(native: list[int], make: Any, shape: tuple[int, ...]) -> None:
    model = make()
    x = torch.randn(shape, requires_grad=True)
    y = model(x)
    seed = torch.randn_like(y)
    y.backward(seed)
    expected = [x.grad, *(p.grad for p in model.parameters())]
    x.grad = None
    model.zero_grad()
    z = compiled(model)(x)
    close(z, y)
    z.backward(seed)
    for g, e in zip([x.grad, *(p.grad for p in model.parameters())], expected):
        close(g, e)
    assert len(native) == 2


def test_an_lstm_and_attention_are_one_graph_of_open_sizes(native: list[int]) -> None:
    class Both(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(5, 6, batch_first=True)
            self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

        def forward(self, x):  # type: ignore[no-untyped-def]
            y, _ = self.lstm(x)
            return y + self.attention(y, y, y, need_weights=False)[0]

    model = Both().eval()
    fast = compiled(model)
    # PyTorch leaves recurrent layers out of its graphs otherwise.
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        for n in (3, 2, 5):
            x = torch.randn(n, 4, 5)
            torch._dynamo.mark_dynamic(x, 0)
            close(fast(x), model(x))
    assert len(native) == 1


def test_frozen_weights_are_constants_until_they_change(native: list[int]) -> None:
    model, x = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3)), torch.randn(2, 5)
    fast = compiled(model)
    assert tilewright.freeze(model) is model
    assert not model.training
    with torch.no_grad():
        close(fast(x), model(x))
        model[0].weight.add_(1)
        close(fast(x), model(x))
        model[0].weight = nn.Parameter(torch.randn(3, 5))
        close(fast(x), model(x))
    # The one that is new is not frozen.
    assert native == [1, 1, 2]


def test_an_option_freezes_in_calls_without_gradients(native: list[int]) -> None:
    model, x = nn.Linear(5, 3), torch.randn(2, 5)
    fast = compiled(model, freeze=True)
    with torch.no_grad():
        close(fast(x), model(x))
        model.weight.add_(1)
        close(fast(x), model(x))
        for k in range(3):
            # The memory of the one before last may be free for this one.
            model.weight.data = torch.full((3, 5), float(k))
            close(fast(x), model(x))
    assert native == [1, 1, 1, 1, 1]
    fast(x).sum().backward()
    close(model.weight.grad, x.sum(0).expand(3, 5))


def test_random_numbers_are_those_of_pytorch(native: list[int]) -> None:
    model = nn.Sequential(nn.Linear(5, 6), nn.Dropout(0.5), nn.ReLU(), nn.Dropout(0.2))
    fast = compiled(model)
    for n in (3, 4, 6):
        x = torch.randn(n, 5)
        torch.manual_seed(n)
        y = model(x)
        y.sum().backward()
        expected = model[0].weight.grad
        model.zero_grad()
        torch.manual_seed(n)
        z = fast(x)
        close(z, y)
        z.sum().backward()
        close(model[0].weight.grad, expected)
        model.zero_grad()
    assert torch.unique(fast(x) == fast(x)).numel() == 2


def test_what_stays_with_pytorch_says_so_once() -> None:
    torch._dynamo.reset()

    def draw(x: Any) -> Any:
        return torch.bernoulli(torch.sigmoid(x)) * 2

    fast, x = torch.compile(draw, backend="tilewright"), torch.ones(2, 5)
    torch.manual_seed(1)
    with pytest.warns(UserWarning, match="tilewright: a graph stays PyTorch's: .*random numbers"):
        y = fast(x)
    torch.manual_seed(1)
    close(y, draw(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(x)


def test_a_wrong_translation_is_found_at_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxscript import opset18 as op

    table = {torch.ops.aten.tanh.default: lambda x: op.Sin(x)}
    monkeypatch.setattr(_torch_translations, "table", lambda: table)
    torch._dynamo.reset()
    x = torch.randn(20)
    with pytest.warns(UserWarning, match="its values are not those of PyTorch"):
        y = torch.compile(torch.tanh, backend="tilewright")(x)
    close(y, torch.tanh(x))


def test_without_the_exporter_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxscript" else find(name))
    spec = importlib.util.spec_from_file_location("tilewright._again", torch_backend.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError) as error:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert str(error.value) == "the backend of torch.compile needs onnxscript: pip install tilewright[torch]"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"layouts": "plan"}, "there is no option `layouts`"), ({"layout": "nchw3c"}, "nchw3c")],
)
def test_options_that_there_are_not_are_errors(options: dict[str, Any], message: str) -> None:
    torch._dynamo.reset()
    with pytest.raises(Exception, match=message):
        torch.compile(nn.Linear(2, 2), backend="tilewright", options=options)(torch.ones(1, 2))


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
