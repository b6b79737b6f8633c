#!/usr/bin/env python3
"""Architectures under torch.compile(backend="tilewright") against PyTorch without it.

    python conformance/torch/run.py [NAME...] [--seed N] [--markdown]

For each: how many graphs are native and how many stay PyTorch's, the largest difference of results and
of gradients as a part of the largest element, seconds to compile forward and backward, and milliseconds
of a forward run without gradients, compiled and not. Sizes are multiples of nothing. The last five need
`torchvision` and `transformers`, and are left out where these are missing; weights are random.
"""

import argparse
import copy
import importlib.util
import time
import warnings

import torch
from torch import nn
from torch.nn import functional as F

from tilewright import torch_backend

#: What rounding may change, as a part of the largest element.
ALLOWED = 2e-3


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return F.relu(x + self.body(x))


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 5, 1), nn.Conv2d(5, channels, 1)

    def forward(self, x):
        scale = self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1))))
        return x * torch.sigmoid(scale)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 9, 3, padding=1), nn.Conv2d(9, 17, 3, padding=1)
        self.up = nn.ConvTranspose2d(17, 9, 2, stride=2)
        self.last = nn.Conv2d(18, 2, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.first(x))
        b = F.relu(self.second(F.max_pool2d(a, 2)))
        return self.last(torch.cat([a, self.up(b)], 1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.body, self.head = kind(7, 11, batch_first=True), nn.Linear(11, 3)

    def forward(self, x):
        return self.head(self.body(x)[0][:, -1])


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(12, 3, 29, dropout=0.0, batch_first=True)
        self.memory = nn.Parameter(torch.randn(1, 4, 12))

    def forward(self, x):
        return self.layer(x, self.memory.expand(x.shape[0], -1, -1))


class Causal(nn.Module):
    """Attention to what came before, with rotated positions and normalized by root mean squares."""

    def __init__(self, width=12, heads=3, vocabulary=31):
        super().__init__()
        self.embed, self.heads = nn.Embedding(vocabulary, width), heads
        self.mixed, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.scale, self.head = nn.Parameter(torch.ones(width)), nn.Linear(width, vocabulary)

    def rotate(self, x):
        half = x.shape[-1] // 2
        place = torch.arange(x.shape[-2], dtype=x.dtype)[:, None]
        angle = place / 100 ** (torch.arange(half, dtype=x.dtype) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward(self, ids):
        x = self.embed(ids)
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.scale
        q, k, v = self.mixed(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        return self.head(x + self.out(y.transpose(1, 2).flatten(2)))


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(3, 12, 4, stride=4)
        self.first = nn.Parameter(torch.zeros(1, 1, 12))
        self.place = nn.Parameter(torch.randn(1, 10, 12))
        self.body = nn.TransformerEncoderLayer(
            12, 2, 23, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
        )
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        y = self.cut(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.first.expand(x.shape[0], -1, -1), y], 1) + self.place
        return self.head(self.body(y)[:, 0])


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(31, 9, padding_idx=0), nn.Linear(9, 4)

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        return self.head((self.embed(ids) * mask).sum(1) / mask.sum(1).clamp(min=1))


class Experts(nn.Module):
    """A mixture in which the best two of five count."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(7, 5)
        self.weight = nn.Parameter(torch.randn(5, 7, 3))

    def forward(self, x):
        best, which = self.gate(x).topk(2, -1)
        made = torch.einsum("bi,eio->beo", x, self.weight)
        chosen = made.gather(1, which.unsqueeze(-1).expand(-1, -1, 3))
        return (best.softmax(-1).unsqueeze(-1) * chosen).sum(1)


class GraphLayer(nn.Module):
    """Sums over the edges of a graph."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 6)
        self.register_buffer("source", torch.tensor([0, 1, 2, 3, 4, 6, 6, 2]))
        self.register_buffer("target", torch.tensor([1, 2, 3, 4, 0, 0, 5, 5]))

    def forward(self, x):
        message = self.linear(x)[self.source]
        return torch.zeros(x.shape[0], 6).index_add(0, self.target, message)


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(6, 12, 2, dilation=2**k) for k in range(3))

    def forward(self, x):
        for k, layer in enumerate(self.layers):
            a, b = layer(F.pad(x, (2**k, 0))).chunk(2, 1)
            x = x + torch.tanh(a) * torch.sigmoid(b)
        return x


class Highway(nn.Module):
    def __init__(self):
        super().__init__()
        self.carry, self.change = nn.Linear(9, 9), nn.Linear(9, 9)

    def forward(self, x):
        for _ in range(3):
            part = torch.sigmoid(self.carry(x))
            x = part * F.elu(self.change(x)) + (1 - part) * x
        return x


def images(*shape):
    return lambda: torch.randn(*shape)


def tokens(*shape):
    return lambda: torch.randint(0, 31, shape)


def classifier(body, inputs):
    return nn.Sequential(body, nn.Flatten(), nn.Linear(inputs, 5))


SMALL = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(13, 29), nn.Tanh(), nn.Linear(29, 5)), images(7, 13)),
    "residual": (lambda: nn.Sequential(nn.Conv2d(3, 9, 3), Residual(9)), images(3, 3, 11, 13)),
    "separable": (
        lambda: nn.Sequential(
            nn.Conv2d(5, 5, 3, groups=5, stride=2), nn.BatchNorm2d(5), nn.Hardswish(), nn.Conv2d(5, 11, 1)
        ),
        images(3, 5, 12, 15),
    ),
    "squeeze_excite": (lambda: nn.Sequential(nn.Conv2d(3, 9, 3), SqueezeExcite(9)), images(2, 3, 9, 10)),
    "unet": (UNet, images(2, 3, 14, 18)),
    "lstm": (lambda: Recurrent(nn.LSTM), images(3, 5, 7)),
    "gru": (lambda: Recurrent(nn.GRU), images(3, 5, 7)),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(12, 3, 29, dropout=0.0, batch_first=True),
        images(3, 7, 12),
    ),
    "decoder": (Decoder, images(3, 5, 12)),
    "causal_rotary": (Causal, tokens(3, 7)),
    "patches": (Patches, images(2, 3, 12, 12)),
    "bag_of_words": (Bag, tokens(5, 9)),
    "autoencoder": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 5, 3, stride=2), nn.ReLU(), nn.ConvTranspose2d(5, 1, 3, stride=2), nn.Sigmoid()
        ),
        images(3, 1, 13, 15),
    ),
    "group_norm_silu": (
        lambda: nn.Sequential(nn.GroupNorm(3, 9), nn.SiLU(), nn.Conv2d(9, 6, 3, padding=1)),
        images(2, 9, 7, 5),
    ),
    "experts": (Experts, images(6, 7)),
    "graph": (GraphLayer, images(7, 5)),
    "wave": (Wave, images(2, 6, 17)),
    "pixel_shuffle": (
        lambda: nn.Sequential(nn.Conv2d(2, 12, 3, padding=1), nn.PixelShuffle(2), nn.PReLU()),
        images(2, 2, 5, 7),
    ),
    "discriminator": (
        lambda: classifier(
            nn.Sequential(
                nn.Conv2d(3, 7, 4, stride=2), nn.LeakyReLU(0.2), nn.InstanceNorm2d(7, affine=True), nn.AvgPool2d(2)
            ),
            28,
        ),
        images(3, 3, 10, 10),
    ),
    "highway": (Highway, images(5, 9)),
}


def vision(name):
    import torchvision

    return getattr(torchvision.models, name)(num_classes=13)


def language(name, **sizes):
    import transformers

    config = getattr(transformers, f"{name}Config")(vocab_size=31, **sizes)
    model = getattr(transformers, f"{name}Model")(config)

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            return self.model(ids).last_hidden_state

    return Hidden()


REAL = {
    "resnet18": (lambda: vision("resnet18"), images(2, 3, 65, 65)),
    "mobilenet_v3_small": (lambda: vision("mobilenet_v3_small"), images(2, 3, 65, 65)),
    "bert": (
        lambda: language(
            "Bert", hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=77
        ),
        tokens(2, 9),
    ),
    "gpt2": (lambda: language("GPT2", n_embd=48, n_layer=2, n_head=3), tokens(2, 9)),
    "llama": (
        lambda: language(
            "Llama",
            hidden_size=48,
            intermediate_size=77,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        ),
        tokens(2, 9),
    ),
}


def difference(got, expected):
    """The largest difference as a part of the largest element."""
    largest = max((float(e.abs().max()) for e in expected), default=0.0) or 1.0
    return max((float((g - e).abs().max()) for g, e in zip(got, expected)), default=0.0) / largest


def fastest(function, count=7):
    """Milliseconds of the shortest of some runs."""
    best = float("inf")
    with torch.no_grad():
        for _ in range(count):
            start = time.perf_counter()
            function()
            best = min(best, time.perf_counter() - start)
    return best * 1e3


def without_dropout(model):
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return model


def checked(make, inputs, seed):
    """Counts of graphs, differences, seconds, and milliseconds."""
    torch._dynamo.reset()
    torch.manual_seed(seed)
    model = without_dropout(make())
    twin, x = copy.deepcopy(model), inputs()
    native, left = [], []
    init, leave = torch_backend._Native.__init__, torch_backend._left_to_pytorch

    def counted(self, *args):
        init(self, *args)
        native.append(self)

    def left_over(module, error):
        left.append(error)
        return leave(module, error)

    torch_backend._Native.__init__, torch_backend._left_to_pytorch = counted, left_over
    try:
        fast = torch.compile(model, backend="tilewright")
        start = time.perf_counter()
        y = fast(x)
        seconds = time.perf_counter() - start
        expected = twin(x)
        weights = torch.randn_like(expected)
        start = time.perf_counter()
        y.backward(weights)
        seconds += time.perf_counter() - start
        expected.backward(weights)
        pairs = [(p, q) for p, q in zip(model.parameters(), twin.parameters()) if q.grad is not None]
        assert all(p.grad is not None for p, _ in pairs), "a gradient is missing"
        gradients = difference([p.grad for p, _ in pairs], [q.grad for _, q in pairs])
        values = difference([y.detach()], [expected.detach()])
        model.eval()
        twin.eval()
        with torch.no_grad():
            values = max(values, difference([fast(x)], [twin(x)]))
        times = fastest(lambda: fast(x)), fastest(lambda: twin(x))
    finally:
        torch_backend._Native.__init__, torch_backend._left_to_pytorch = init, leave
    return (len(native), len(left), values, gradients, seconds, *times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    torch._dynamo.config.allow_rnn = True
    cases = dict(SMALL)
    if importlib.util.find_spec("torchvision") and importlib.util.find_spec("transformers"):
        cases.update(REAL)
    head = ("architecture", "native", "left", "values", "gradients", "compile s", "ms", "eager ms")
    line = "| {:<18} | {:>6} | {:>4} | {:>9} | {:>9} | {:>9} | {:>7} | {:>8} |".format
    print(line(*head))
    if given.markdown:
        print("|---|" + "--:|" * (len(head) - 1))
    wrong = []
    for name in given.names or cases:
        with warnings.catch_warnings():
            if given.markdown:
                warnings.simplefilter("ignore")
            native, left, values, gradients, seconds, ms, eager = checked(*cases[name], given.seed)
        numbers = f"{values:.1e}", f"{gradients:.1e}", f"{seconds:.1f}", f"{ms:.2f}", f"{eager:.2f}"
        print(line(name, native, left, *numbers), flush=True)
        if values > ALLOWED or gradients > ALLOWED:
            wrong.append(name)
    if wrong:
        raise SystemExit(f"other values: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
