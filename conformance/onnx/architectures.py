"""Small networks with random weights, each of a kind of size arithmetic that exports of real ones hold.

A network is exported at the sizes of `first` and runs at those of `others`, which were not traced. `axes` says
which axes of the inputs are open. What the network does with sizes is the point; channels are few.
"""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Network:
    """A network with the inputs at several sizes."""

    name: str
    module: nn.Module
    axes: dict
    inputs: object  # a function of sizes
    first: tuple
    others: list
    skip: tuple = field(default=())  # exporters that refuse it themselves


ALL = []


def network(first, *others, axes, inputs, skip=()):
    """Registers a class of modules."""

    def register(cls):
        torch.manual_seed(len(ALL))
        ALL.append(Network(cls.__name__, cls().eval(), axes, inputs, first, list(others), skip))
        return cls

    return register


def image(*shape):
    return torch.randn(*shape)


def words(count, *shape):
    return torch.randint(0, count, shape)


class Attention(nn.Module):
    """Heads by views of the sizes of what comes in."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores + mask
        x = scores.softmax(-1) @ v
        return self.out(x.transpose(1, 2).reshape(batch, length, width))


@network((2, 32, 48), (1, 16, 16), (3, 40, 24), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 3, h, w),))
class VisionTransformer(nn.Module):
    """Patches, one more token, positions that are resized."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.positions = nn.Parameter(torch.randn(1, 16, 4, 4))
        self.attention = Attention(16, 4)

    def forward(self, x):
        x = self.patches(x)
        at = F.interpolate(self.positions, size=x.shape[2:], mode="bilinear", align_corners=False)
        x = (x + at).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.attention(x)[:, 0]


@network((2, 5, 3), (1, 1, 7), (3, 9, 1), axes={"x": {0: "batch", 1: "seq"}, "past": {0: "batch", 2: "past_length"}}, inputs=lambda b, s, p: (image(b, s, 12), image(b, 3, p, 4)))
class Decoder(nn.Module):
    """Keys that are kept, and a mask of what comes later."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.out = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x, past):
        batch, length, width = x.shape
        q = self.q(x).view(batch, length, 3, 4).transpose(1, 2)
        k = torch.cat([past, self.k(x).view(batch, length, 3, 4).transpose(1, 2)], 2)
        total = k.shape[2]
        row = torch.arange(total - length, total).unsqueeze(1)
        mask = torch.arange(total).unsqueeze(0) > row
        scores = (q @ k.transpose(-2, -1)).masked_fill(mask, -1e4).softmax(-1)
        y = (scores @ k).transpose(1, 2).reshape(batch, length, width)
        return self.out(y), k.reshape(-1, total, 4)


@network((2, 7), (1, 1), (3, 16), axes={"ids": {0: "batch", 1: "seq"}, "mask": {0: "batch", 1: "seq"}}, inputs=lambda b, s: (words(50, b, s), torch.ones(b, s, dtype=torch.int64)))
class Encoder(nn.Module):
    """A table of positions that is cut to the length."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(50, 16), nn.Embedding(16, 16)
        self.register_buffer("ids", torch.arange(16).unsqueeze(0))
        self.norm, self.attention = nn.LayerNorm(16), Attention(16, 4)

    def forward(self, ids, mask):
        x = self.words(ids) + self.positions(self.ids[:, : ids.shape[1]])
        mask = (1 - mask[:, None, None, :].to(x.dtype)) * -1e4
        return self.attention(self.norm(x), mask)


@network((2, 9), (1, 1), (2, 20), axes={"x": {0: "batch", 1: "seq"}}, inputs=lambda b, s: (image(b, s, 8),))
class Sinusoids(nn.Module):
    """A table of sines that is cut to the length and added."""

    def __init__(self):
        super().__init__()
        at = torch.arange(64).unsqueeze(1) / 10 ** (torch.arange(8) / 4)
        self.register_buffer("table", at.sin().unsqueeze(0))

    def forward(self, x):
        return F.relu(x + self.table[:, : x.size(1)])


class Unet(nn.Module):
    """Halves twice, and doubles with a pad where a size was odd."""

    mode = "constant"

    def __init__(self):
        super().__init__()
        sizes = [(1, 4), (4, 6), (6, 8)]
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in sizes)
        self.up = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in [(14, 6), (10, 4)])

    def forward(self, x):
        kept = []
        for k, layer in enumerate(self.down):
            x = F.relu(layer(x))
            if k < 2:
                kept.append(x)
                x = F.max_pool2d(x, 2)
        for layer in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            skip = kept.pop()
            rows, columns = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
            pads = [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2]
            x = layer(torch.cat([skip, F.pad(x, pads, mode=self.mode)], 1))
        return x


UNET = dict(axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 1, h, w),))


@network((1, 13, 18), (2, 16, 8), (1, 9, 11), **UNET)
class UnetConstant(Unet):
    pass


@network((1, 13, 18), (2, 16, 8), (1, 9, 11), **UNET, skip=("dynamo",))
class UnetReplicate(Unet):
    mode = "replicate"


@network((1, 13, 18), (2, 16, 8), (1, 19, 11), **UNET, skip=("dynamo",))
class UnetReflect(Unet):
    mode = "reflect"


@network((1, 64, 96), (2, 70, 33), (1, 32, 161), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 3, h, w),))
class Detector(nn.Module):
    """Five halvings, a mask of the image, and queries."""

    def __init__(self):
        super().__init__()
        widths = [3, 4, 4, 6, 8, 8]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in zip(widths, widths[1:]))
        self.queries, self.attention = nn.Parameter(torch.randn(5, 8)), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        mask = torch.ones(x.shape[0], *x.shape[2:], device=x.device)
        for layer in self.layers:
            x = F.relu(layer(x))
        mask = F.interpolate(mask[None], size=x.shape[-2:])[0]
        rows, columns = mask.cumsum(1), mask.cumsum(2)
        x = x + (rows.unsqueeze(1).sin() + columns.unsqueeze(1).cos())
        tokens = x.flatten(2).permute(0, 2, 1)
        queries = self.queries.unsqueeze(0).expand(x.shape[0], -1, -1)
        return self.attention(queries, tokens, tokens)[0]


@network((2, 7), (1, 3), (2, 12), axes={"x": {0: "batch", 1: "length"}}, inputs=lambda b, n: (image(b, n, 6),))
class RelativeAttention(nn.Module):
    """Positions by distance from a padded or cut table, moved by padding and reshaping."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 9, 6))

    def forward(self, x):
        batch, n, _ = x.shape
        pad, start = max(n - 5, 0), max(5 - n, 0)
        table = F.pad(self.table, [0, 0, pad, pad])[:, start : start + 2 * n - 1]
        y = x @ table.transpose(1, 2)
        y = F.pad(y, [0, 1]).reshape(batch, n * 2 * n)
        y = F.pad(y, [0, n - 1]).view(batch, n + 1, 2 * n - 1)
        return y[:, :n, n - 1 :].softmax(-1) @ x


@network((1, 10, 13), (2, 8, 8), (1, 5, 17), axes={"x": {0: "batch", 1: "height", 2: "width"}}, inputs=lambda b, h, w: (image(b, h, w, 8),))
class Windows(nn.Module):
    """Windows of four, after padding to a multiple, shifted by two."""

    def __init__(self):
        super().__init__()
        self.attention = Attention(8, 2)

    def forward(self, x):
        batch, height, width, channels = x.shape
        x = F.pad(x, [0, 0, 0, (4 - width % 4) % 4, 0, (4 - height % 4) % 4])
        _, rows, columns, _ = x.shape
        x = torch.roll(x, (-2, -2), (1, 2))
        x = x.view(batch, rows // 4, 4, columns // 4, 4, channels).permute(0, 1, 3, 2, 4, 5)
        x = self.attention(x.reshape(-1, 16, channels))
        x = x.view(batch, rows // 4, columns // 4, 4, 4, channels).permute(0, 1, 3, 2, 4, 5)
        x = torch.roll(x.reshape(batch, rows, columns, channels), (2, 2), (1, 2))
        return x[:, :height, :width]


@network((1, 8, 12), (2, 4, 4), (1, 2, 10), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 3, h, w),))
class Unshuffle(nn.Module):
    """Pixels to channels and back."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 12, 3, padding=1)

    def forward(self, x):
        return F.pixel_shuffle(self.conv(F.pixel_unshuffle(x, 2)), 2) + x


@network((2, 400), (1, 133), (3, 1000), axes={"x": {0: "batch", 1: "samples"}}, inputs=lambda b, n: (image(b, n),))
class Speech(nn.Module):
    """Strided windows over sound, a norm over groups, and heads."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(1, 8, 10, 5), nn.Conv1d(8, 8, 3, 2)
        self.norm, self.positions = nn.GroupNorm(8, 8), nn.Conv1d(8, 8, 4, padding=2, groups=2)
        self.attention = Attention(8, 2)

    def forward(self, x):
        x = F.gelu(self.norm(self.first(x.unsqueeze(1))))
        x = F.gelu(self.second(x))
        x = x + self.positions(x)[:, :, :-1]
        return self.attention(x.transpose(1, 2))


@network((2, 11), (1, 3), (3, 40), axes={"x": {0: "batch", 2: "frames"}}, inputs=lambda b, n: (image(b, 5, n),))
class Vocoder(nn.Module):
    """Grows by transposed convolutions, with a part that is cut off."""

    def __init__(self):
        super().__init__()
        self.up = nn.ModuleList([nn.ConvTranspose1d(5, 4, 8, 4, 2), nn.ConvTranspose1d(4, 3, 4, 2, 1)])
        self.out = nn.Conv1d(3, 1, 7, padding=3, padding_mode="reflect")

    def forward(self, x):
        for layer in self.up:
            x = F.leaky_relu(layer(x))
        return self.out(x).squeeze(1)[:, 3:-2].tanh()


@network((9,), (4,), (20,), axes={"boxes": {0: "n"}, "scores": {0: "m"}}, inputs=lambda n: (torch.rand(n, 4), torch.rand(n)))
class Kept(nn.Module):
    """Boxes and scores of one mask, joined."""

    def forward(self, boxes, scores):
        keep = scores > 0.1
        boxes, scores = boxes[keep], scores[keep]
        return torch.cat([boxes, scores.unsqueeze(1)], 1), boxes * scores.unsqueeze(1)


@network((1, 40, 56), (2, 33, 64), (1, 17, 30), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 3, h, w),))
class Pyramid(nn.Module):
    """Levels that are added to larger ones."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in [(3, 6), (6, 6), (6, 6)])
        self.side = nn.ModuleList(nn.Conv2d(6, 6, 1) for _ in range(3))

    def forward(self, x):
        levels = []
        for layer, side in zip(self.down, self.side):
            x = F.relu(layer(x))
            levels.append(side(x))
        y = levels.pop()
        for level in reversed(levels):
            y = level + F.interpolate(y, size=level.shape[-2:], mode="nearest")
        return y


@network((1, 33, 40), (2, 64, 16), (1, 50, 71), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 3, h, w),))
class Segmenter(nn.Module):
    """Tokens of an image back to an image, resized to its size."""

    def __init__(self):
        super().__init__()
        self.patches, self.attention = nn.Conv2d(3, 8, 7, 4, 3), Attention(8, 2)
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y = self.patches(x)
        batch, _, height, width = y.shape
        tokens = self.attention(y.flatten(2).transpose(1, 2))
        y = tokens.permute(0, 2, 1).reshape(batch, -1, height, width)
        pooled = F.adaptive_avg_pool2d(y, 1)
        y = y + F.interpolate(pooled, size=(height, width), mode="bilinear", align_corners=False)
        return F.interpolate(self.head(y), size=x.shape[2:], mode="bilinear", align_corners=False)


@network((1, 25, 40), (1, 50, 33), axes={"x": {2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 2, h, w),))
class Shrunk(nn.Module):
    """A resize against aliasing."""

    def forward(self, x):
        return F.interpolate(x, size=(8, 11), mode="bilinear", align_corners=False, antialias=True)


@network((6, 9), (4, 1), (10, 30), (5, 0), axes={"nodes": {0: "n"}, "edges": {1: "e"}}, inputs=lambda n, e: (image(n, 5), words(n, 2, e)))
class Messages(nn.Module):
    """Sums over the edges of a graph, of which there may be none."""

    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(10, 6), nn.Linear(11, 4)

    def forward(self, nodes, edges):
        source, target = edges[0], edges[1]
        sent = F.relu(self.message(torch.cat([nodes[source], nodes[target]], 1)))
        sums = torch.zeros(nodes.shape[0], 6).index_add(0, target, sent)
        return self.update(torch.cat([nodes, sums], 1)).mean(0)


@network((2, 6), (1, 1), (3, 17), axes={"x": {0: "batch", 1: "seq"}}, inputs=lambda b, s: (image(b, s, 16),))
class Rotary(nn.Module):
    """Rotations by position, and a triangle as the mask."""

    def forward(self, x):
        batch, n, width = x.shape
        at = torch.arange(n, dtype=x.dtype)[:, None] / 100 ** (torch.arange(4) / 4)
        cos, sin = torch.cat([at, at], 1).cos(), torch.cat([at, at], 1).sin()
        x = x.view(batch, n, 2, width // 2).transpose(1, 2)
        half, other = x.chunk(2, -1)
        x = x * cos + torch.cat([-other, half], -1) * sin
        mask = torch.tril(torch.ones(n, n)) == 0
        scores = (x @ x.transpose(-2, -1)).masked_fill(mask, float("-inf")).softmax(-1)
        return (scores @ x).transpose(1, 2).flatten(2)


@network((2, 5, 5), (1, 3, 3), (4, 8, 8), axes={"x": {0: "b0", 1: "n0"}, "y": {0: "b1", 1: "n1"}}, inputs=lambda b, n, m: (image(b, n, 6), image(b, m, 6)))
class TwoNames(nn.Module):
    """Sizes that are equal, and have names of their own."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 6)

    def forward(self, x, y):
        batch, n, _ = x.shape
        joined = self.linear(torch.cat([x, y], -1)).reshape(batch * n, 2, 3)
        scores = x @ y.transpose(1, 2)
        return joined.view(y.shape[0], y.shape[1], 6) * scores.mean(-1, keepdim=True)


@network((2, 10), (1, 7), (2, 12), axes={"x": {0: "batch", 1: "seq"}}, inputs=lambda b, s: (image(b, s, 4),))
class Halves(nn.Module):
    """Two parts of a length that may be odd, of which the first is reversed."""

    def forward(self, x):
        middle = (x.shape[1] + 1) // 2
        first, second = x[:, :middle].flip(1), x[:, middle:]
        pairs = first[:, : x.shape[1] // 2] * second
        return torch.cat([first, pairs], 1).cumsum(1), pairs.amax(1)


@network((1, 12, 10), (2, 5, 9), (1, 20, 7), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 2, h, w),))
class Patches(nn.Module):
    """Windows as columns, weighted by position."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(18, 4)

    def forward(self, x):
        batch, _, height, width = x.shape
        columns = F.unfold(x, 3, padding=1)
        y = self.linear(columns.transpose(1, 2)).transpose(1, 2)
        return y.reshape(batch, 4, height, width)


@network((2, 9), (1, 3), (2, 30), axes={"x": {0: "batch", 1: "n"}}, inputs=lambda b, n: (image(b, n, 3),))
class Neighbours(nn.Module):
    """The nearest of points, at most three."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 8)

    def forward(self, x):
        batch, n, _ = x.shape
        apart = ((x.unsqueeze(2) - x.unsqueeze(1)) ** 2).sum(-1)
        nearest = apart.topk(3, largest=False).indices
        base = torch.arange(batch).view(-1, 1, 1) * n
        near = x.reshape(batch * n, 3)[(nearest + base).view(-1)].view(batch, n, 3, 3)
        pair = torch.cat([near, x.unsqueeze(2).expand(-1, -1, 3, -1) - near], -1)
        return F.relu(self.linear(pair)).amax(2).amax(1)


@network((3, 8), (1, 2), (5, 13), axes={"x": {0: "batch", 1: "seq"}, "lengths": {0: "batch"}}, inputs=lambda b, s: (image(b, s, 6), torch.randint(1, s + 1, (b,))))
class Tagger(nn.Module):
    """A recurrence, the last state of each example by its length."""

    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(6, 5, batch_first=True, bidirectional=True), nn.Linear(10, 3)

    def forward(self, x, lengths):
        batch, n, _ = x.shape
        y, _ = self.lstm(x)
        mask = torch.arange(n).unsqueeze(0) < lengths.unsqueeze(1)
        y = y * mask.unsqueeze(-1)
        return self.out(y[torch.arange(batch), lengths - 1]), y.sum(1) / lengths.unsqueeze(1)


@network((2, 6, 7), (1, 3, 3), (1, 9, 4), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 3, h, w),))
class Warped(nn.Module):
    """A grid made of the sizes, by which an image is looked up."""

    def forward(self, x):
        batch, _, height, width = x.shape
        rows, columns = torch.arange(height) / (height - 1), torch.arange(width) / (width - 1)
        grid = torch.stack([columns.expand(height, width), rows.unsqueeze(1).expand(height, width)], -1)
        grid = (grid * 2 - 1).unsqueeze(0).repeat(batch, 1, 1, 1)
        return F.grid_sample(x, grid * 0.8, align_corners=True)


@network((2, 12), (1, 5), (3, 31), axes={"x": {0: "batch", 1: "seq"}}, inputs=lambda b, s: (image(b, s, 4),))
class Chunks(nn.Module):
    """Blocks of four after padding, and their means spread out again."""

    def forward(self, x):
        batch, n, width = x.shape
        blocks = (n + 3) // 4
        y = F.pad(x, [0, 0, 0, blocks * 4 - n]).reshape(batch, blocks, 4, width)
        means = y.mean(2, keepdim=True).expand(-1, -1, 4, -1).reshape(batch, -1, width)
        return x - means[:, :n]


@network((1, 4, 4), (2, 6, 6), (3, 3, 3), axes={"x": {0: "batch", 1: "tokens"}}, inputs=lambda b, h, w: (image(b, h * w + 1, 8),))
class SquareOfTokens(nn.Module):
    """Tokens as a square whose side is a root, with the first one added to each."""

    def __init__(self):
        super().__init__()
        self.mix, self.norm = nn.Linear(16, 6), nn.LayerNorm(6)
        self.conv = nn.Conv2d(6, 4, 3, padding=1)

    def forward(self, x):
        first, x = x[:, 0], x[:, 1:]
        batch, count, width = x.shape
        side = int(count**0.5)
        x = x.reshape(batch, side, side, width).permute(0, 3, 1, 2)
        kept = x.shape
        x = x.flatten(2).permute(0, 2, 1)
        x = self.norm(self.mix(torch.cat([x, first.unsqueeze(1).expand_as(x)], -1)))
        return self.conv(x.permute(0, 2, 1).reshape(kept[0], -1, kept[2], kept[3]))


@network((1, 8, 12), (2, 12, 6), (1, 4, 10), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 8, h, w),))
class Unfolded(nn.Module):
    """Patches of two by two as sequences, whose number is rounded up by floats."""

    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(8), Attention(8, 2)

    def forward(self, x):
        batch, channels, height, width = x.shape
        rows, columns = math.ceil(height / 2) * 2, math.ceil(width / 2) * 2
        down, across = rows // 2, columns // 2
        y = x.reshape(batch * channels * down, 2, across, 2).transpose(1, 2)
        y = y.reshape(batch, channels, down * across, 4).transpose(1, 3)
        y = self.attention(self.norm(y.reshape(batch * 4, down * across, channels)))
        y = y.view(batch, 4, down * across, channels).transpose(1, 3)
        y = y.reshape(batch * channels * down, across, 2, 2).transpose(1, 2)
        return y.reshape(batch, channels, rows, columns) + x


@network((2, 40), (1, 17), (3, 101), axes={"x": {0: "batch", 2: "samples"}}, inputs=lambda b, n: (image(b, 1, n),))
class PaddedFrames(nn.Module):
    """Padded on the right until a last frame is whole, as floats round it up."""

    def __init__(self):
        super().__init__()
        self.conv, self.lstm = nn.Conv1d(1, 4, 6, 3), nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        frames = (x.shape[-1] - 6 + 3) / 3 + 1
        wanted = (math.ceil(frames) - 1) * 3 + 3
        x = self.conv(F.pad(x, (3, wanted - x.shape[-1])))
        return self.lstm(x.transpose(1, 2))[0]


@network((1, 8, 12), (2, 16, 8), (1, 4, 20), axes={"x": {0: "batch", 1: "height", 2: "width"}}, inputs=lambda b, h, w: (image(b, h, w, 6),))
class ShiftedWindows(nn.Module):
    """Shifted windows, and a mask of the regions that a shift joins, counted along both axes."""

    def __init__(self):
        super().__init__()
        self.attention = Attention(6, 2)

    def forward(self, x):
        batch, height, width, channels = x.shape
        rows, columns = torch.arange(height), torch.arange(width)
        rows = (rows >= height - 4).long() + (rows >= height - 2).long()
        columns = (columns >= width - 4).long() + (columns >= width - 2).long()
        regions = (rows.unsqueeze(1) * 3 + columns.unsqueeze(0)).float()
        regions = regions.view(height // 4, 4, width // 4, 4).transpose(1, 2).reshape(-1, 16)
        mask = torch.where(regions.unsqueeze(1) != regions.unsqueeze(2), -100.0, 0.0)
        x = torch.roll(x, (-2, -2), (1, 2))
        x = x.view(batch, height // 4, 4, width // 4, 4, channels).transpose(2, 3)
        mask = mask.repeat(batch, 1, 1).unsqueeze(1)
        x = self.attention(x.reshape(-1, 16, channels), mask)
        x = x.view(batch, height // 4, width // 4, 4, 4, channels).transpose(2, 3)
        return torch.roll(x.reshape(batch, height, width, channels), (2, 2), (1, 2))


@network((1, 33, 48), (2, 64, 31), (1, 40, 97), axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 3, h, w),))
class SinePositions(nn.Module):
    """Positions of what a mask counts, over the last of them, along both axes alike."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 8, 8, 4)

    def forward(self, x):
        x = self.down(x)
        mask = torch.ones(x.shape[0], x.shape[2], x.shape[3])
        rows, columns = mask.cumsum(1), mask.cumsum(2)
        rows = rows / (rows[:, -1:, :] + 1e-6) * 6.28
        columns = columns / (columns[:, :, -1:] + 1e-6) * 6.28
        scale = 10 ** (torch.arange(4) / 2)
        parts = [rows[..., None] / scale, columns[..., None] / scale]
        parts = [torch.stack([p[..., 0::2].sin(), p[..., 1::2].cos()], 4).flatten(3) for p in parts]
        return x + torch.cat(parts, 3).permute(0, 3, 1, 2)


@network((1, 7), (2, 3), (1, 20), axes={"x": {0: "batch", 1: "tokens"}}, inputs=lambda b, n: (image(b, n, 6),))
class Durations(nn.Module):
    """Each token as often as it is said to last, and noise that is scaled by zero."""

    def __init__(self):
        super().__init__()
        self.duration, self.mix = nn.Linear(6, 1), nn.Linear(6, 6)

    def forward(self, x):
        x = x + torch.randn_like(x) * 0.0
        lengths = self.duration(x).squeeze(-1).exp().ceil().clamp(max=5)
        ends = lengths.cumsum(1)
        frames = torch.arange(ends[:, -1].max().long())
        taken = (frames.view(1, -1, 1) < ends.unsqueeze(1)).to(x.dtype)
        taken = taken - F.pad(taken, (1, 0))[:, :, :-1]
        return self.mix(taken @ x)
