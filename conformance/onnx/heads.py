"""Small networks with random weights: heads of detectors, matching, and windows that sizes make.

As those of `architectures.py`, and registered there.
"""

import torch
import torch.nn.functional as F
from torch import nn

from architectures import image, network

PICTURE = dict(axes={"x": {0: "batch", 2: "height", 3: "width"}}, inputs=lambda b, h, w: (image(b, 3, h, w),))
ROWS = dict(axes={"x": {0: "batch", 1: "seq"}}, inputs=lambda b, n: (image(b, n, 12),))


def centres(height, width, offset=0.5):
    """The places of pixels as pairs, columns first."""
    rows, columns = torch.meshgrid(
        torch.arange(height) + offset, torch.arange(width) + offset, indexing="ij"
    )
    return torch.stack([columns, rows], -1)


@network((1, 64, 96), (2, 70, 90), (1, 33, 160), **PICTURE)
class PriorBoxes(nn.Module):
    """Boxes around the pixels of several levels, and the best of them."""

    counts = (4, 6, 4)

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(a, 8, 3, s, 1) for a, s in [(3, 4), (8, 2), (8, 2)])
        self.boxes = nn.ModuleList(nn.Conv2d(8, 4 * n, 3, padding=1) for n in self.counts)
        self.classes = nn.ModuleList(nn.Conv2d(8, 5 * n, 3, padding=1) for n in self.counts)

    def forward(self, x):
        boxes, scores, priors = [], [], []
        for down, box, kind, count in zip(self.down, self.boxes, self.classes, self.counts):
            x = F.relu(down(x))
            batch, _, height, width = x.shape
            boxes.append(box(x).permute(0, 2, 3, 1).reshape(batch, -1, 4))
            scores.append(kind(x).permute(0, 2, 3, 1).reshape(batch, -1, 5))
            middles = centres(height, width) / torch.tensor([width, height])
            middles = middles.reshape(-1, 1, 2).expand(-1, count, 2)
            sizes = torch.linspace(0.1, 0.9, count).reshape(1, count, 1).expand(height * width, count, 2)
            priors.append(torch.cat([middles, sizes], -1).reshape(-1, 4))
        boxes, scores, priors = torch.cat(boxes, 1), torch.cat(scores, 1).softmax(-1), torch.cat(priors)
        middles = priors[:, :2] + boxes[..., :2] * 0.1 * priors[:, 2:]
        sizes = priors[:, 2:] * torch.exp(boxes[..., 2:] * 0.2)
        boxes = torch.cat([middles - sizes / 2, middles + sizes / 2], -1)
        best, at = scores[..., 1:].max(-1).values.topk(20, dim=1)
        return torch.gather(boxes, 1, at.unsqueeze(-1).expand(-1, -1, 4)), best


@network((1, 64, 96), (2, 96, 64), (1, 160, 32), **PICTURE)
class GridBoxes(nn.Module):
    """Three levels, of which one is made larger, and boxes that their grids move."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(a, 8, 3, s, 1) for a, s in [(3, 8), (8, 2), (8, 2)])
        self.heads = nn.ModuleList(nn.Conv2d(8, 3 * 9, 1) for _ in range(3))
        self.join = nn.Conv2d(16, 8, 1)

    def forward(self, x):
        levels = []
        for down in self.down:
            x = F.silu(down(x))
            levels.append(x)
        large = F.interpolate(levels[2], scale_factor=2, mode="nearest")
        levels[1] = self.join(torch.cat([large, levels[1]], 1))
        found = []
        for k, (level, head) in enumerate(zip(levels, self.heads)):
            y = head(level)
            batch, _, height, width = y.shape
            y = y.view(batch, 3, 9, height, width).permute(0, 1, 3, 4, 2)
            places, sizes, rest = y.sigmoid().split((2, 2, 5), 4)
            places = (places * 2 - 0.5 + centres(height, width, 0)) * 8 * 2**k
            y = torch.cat((places, (sizes * 2) ** 2 * 10, rest), 4)
            found.append(y.view(batch, 3 * width * height, 9))
        return torch.cat(found, 1)


@network((1, 64, 96), (2, 70, 90), (1, 33, 47), **PICTURE)
class Distances(nn.Module):
    """Distances to the sides of boxes as means of distributions, around anchors of two levels."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(a, 8, 3, s, 1) for a, s in [(3, 8), (8, 2)])
        self.heads = nn.ModuleList(nn.Conv2d(8, 4 * 8 + 3, 1) for _ in range(2))

    def forward(self, x):
        levels, anchors, strides = [], [], []
        for down, head, stride in zip(self.down, self.heads, (8.0, 16.0)):
            x = F.silu(down(x))
            height, width = x.shape[2:]
            levels.append(head(x).flatten(2))
            anchors.append(centres(height, width).view(-1, 2))
            strides.append(torch.full((height * width, 1), stride))
        boxes, classes = torch.cat(levels, 2).split((32, 3), 1)
        batch, _, count = boxes.shape
        bins = boxes.view(batch, 4, 8, count).transpose(2, 1).softmax(1)
        near, far = (bins * torch.arange(8.0).view(1, 8, 1, 1)).sum(1).chunk(2, 1)
        anchors = torch.cat(anchors).T.unsqueeze(0)
        near, far = anchors - near, anchors + far
        boxes = torch.cat([(near + far) / 2, far - near], 1) * torch.cat(strides).T
        return torch.cat([boxes, classes.sigmoid()], 1)


@network((9,), (4,), (20,), axes={"boxes": {0: "n"}, "scores": {0: "n"}}, inputs=lambda n: (torch.cat([torch.rand(n, 2), torch.rand(n, 2) + 1], 1), torch.rand(n)))
class Overlaps(nn.Module):
    """Boxes in the order of their scores, without those that overlap a better one."""

    def forward(self, boxes, scores):
        order = scores.argsort(descending=True)
        boxes = boxes[order]
        near = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
        far = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        both = (far - near).clamp(min=0).prod(-1)
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
        overlap = both / (areas[:, None] + areas[None] - both)
        kept = torch.triu(overlap, 1).amax(0) < 0.5
        return boxes[kept], scores[order][kept], kept.nonzero()


@network((1, 40, 56), (2, 33, 64), (1, 17, 30), **PICTURE)
class HalfScale(nn.Module):
    """Half of the size, rounded down, and back."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(7, 4, 3, padding=1)

    def forward(self, x):
        how = dict(mode="bilinear", align_corners=False)
        y = F.interpolate(x, scale_factor=0.5, recompute_scale_factor=True, **how)
        y = F.interpolate(self.first(y), size=x.shape[2:], **how)
        return self.second(torch.cat([x, y], 1))


@network((1, 40, 56), (2, 33, 64), (1, 17, 30), **PICTURE)
class PyramidOfMeans(nn.Module):
    """Means over a known number of bands of an open image, by running sums."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(12, 4, 1)
        self.sides = nn.ModuleList(nn.Conv2d(6, 2, 1) for _ in range(3))

    def forward(self, x):
        x = self.first(x)
        height, width = x.shape[2:]
        parts = [x]
        for count, side in zip((1, 2, 4), self.sides):
            begins = (torch.arange(count) * height) // count
            ends = ((torch.arange(count) + 1) * height + count - 1) // count
            sums = F.pad(x.cumsum(2), (0, 0, 1, 0))
            means = (sums[:, :, ends] - sums[:, :, begins]) / (ends - begins).view(1, 1, count, 1)
            parts.append(F.interpolate(side(means), size=(height, width), mode="bilinear", align_corners=False))
        return self.last(torch.cat(parts, 1))


@network((2, 12), (1, 5), (3, 31), **ROWS)
class Neighbours(nn.Module):
    """Blocks of four that attend to themselves and to those beside them."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(12, 36)

    def forward(self, x):
        batch, n, width = x.shape
        q, k, v = self.qkv(F.pad(x, (0, 0, 0, (4 - n % 4) % 4))).chunk(3, -1)
        blocks = q.shape[1] // 4
        q = q.view(batch, blocks, 4, width)
        k, v = (F.pad(t, (0, 0, 4, 4)).unfold(1, 12, 4).transpose(-1, -2) for t in (k, v))
        places = torch.arange(blocks).unsqueeze(1) * 4 + torch.arange(12) - 4
        scores = (q @ k.transpose(-1, -2)).masked_fill(
            ((places < 0) | (places >= n))[None, :, None], -1e9
        )
        return (scores.softmax(-1) @ v).reshape(batch, blocks * 4, width)[:, :n]


@network((2, 12), (1, 5), (3, 31), **ROWS)
class BestHalf(nn.Module):
    """The better half of the rows, weighted and joined with all of them, and orders."""

    def __init__(self):
        super().__init__()
        self.score, self.mix = nn.Linear(12, 1), nn.Linear(12, 7)

    def forward(self, x):
        n, width = x.shape[1:]
        scores = self.score(x).squeeze(-1)
        best, at = scores.topk((n + 1) // 2, 1)
        y = torch.gather(x, 1, at.unsqueeze(-1).expand(-1, -1, width)) * best.sigmoid().unsqueeze(-1)
        return self.mix(torch.cat([y, x], 1)), scores.argsort(1)


@network((2, 12), (1, 5), (3, 31), **ROWS)
class TwoExperts(nn.Module):
    """Each row by two experts of four, as products of all that are weighted."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(12, 4)
        self.wide, self.narrow = (nn.Parameter(torch.randn(4, *s) * 0.2) for s in [(12, 20), (20, 12)])

    def forward(self, x):
        weights, at = self.gate(x).softmax(-1).topk(2, -1)
        y = torch.einsum("bnc,ech->bneh", x, self.wide).relu()
        y = torch.einsum("bneh,ehc->bnec", y, self.narrow)
        weights = torch.zeros_like(y[..., 0]).scatter(2, at, weights)
        return (y * weights.unsqueeze(-1)).sum(2)


@network((2, 400), (1, 133), (3, 1000), axes={"x": {0: "batch", 1: "samples"}}, inputs=lambda b, n: (image(b, n),))
class Spectra(nn.Module):
    """Spectra of overlapping windows of sound, over their means, as an image of frequencies and time."""

    def __init__(self):
        super().__init__()
        self.register_buffer("waves", torch.randn(34, 1, 32))
        self.conv, self.out = nn.Conv2d(1, 4, 3, (2, 1), 1), nn.Linear(36, 5)

    def forward(self, x):
        y = F.conv1d(F.pad(x.unsqueeze(1), (16, 16), mode="reflect"), self.waves, stride=8)
        real, imaginary = y.chunk(2, 1)
        y = (real * real + imaginary * imaginary + 1e-5).sqrt().log()
        y = (y - y.mean(-1, keepdim=True)) / (y.std(-1, keepdim=True) + 1e-5)
        y = F.relu(self.conv(y.unsqueeze(1)))
        batch, channels, bands, frames = y.shape
        y = y.permute(0, 3, 1, 2).reshape(batch, frames, channels * bands)
        return self.out(y).log_softmax(-1)
