"""Pictures of layouts: what lies where in memory."""

from __future__ import annotations

import colorsys
import html
import inspect
import itertools
from collections.abc import Sequence
from typing import Any, Callable

from .errors import InputError
from .schedule import AXIS_SEPARATOR

__all__ = ["Picture", "layout"]

#: Width and height of a cell, and most cells of a picture.
WIDTH, HEIGHT = 44, 24
MOST = 4096


def _tint(index: int) -> str:
    """A light color, another one for the next index. In hexadecimal, which every viewer reads."""
    red, green, blue = colorsys.hls_to_rgb((47 * index) % 360 / 360, 0.84, 0.6)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


class Picture:
    """A picture, as SVG: ``str`` of it; a notebook shows it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg


def layout(
    shape: Sequence[int],
    index_map: Callable[..., Any],
    *,
    physical: Sequence[int] | None = None,
    name: str = "A",
) -> Picture:
    """Draws a layout: a row of memory for each physical index but the last, padding in grey.

    Args:
        shape: The logical extents.
        index_map: From logical to physical indices, the function that ``transform_layout`` takes.
        physical: The physical extents; as small as the indices allow unless said.
        name: What the tensor is called.

    Raises:
        tilewright.InputError: for more cells than a picture can show, or indices that are none.

    >>> import tilewright
    >>> picture = tilewright.drawing.layout((14,), lambda i: [i // 4, i % 4])
    >>> str(picture).count("<rect")
    16
    """
    count = 1
    for extent in shape:
        count *= extent
    if not 0 < count <= MOST:
        raise InputError(f"a picture of {count} cells; from 1 to {MOST} are possible")
    takes = len(inspect.signature(index_map).parameters)
    if takes != len(shape):
        raise InputError(f"the map takes {takes} indices, and the shape has {len(shape)}")
    cells: dict[tuple[int, ...], tuple[int, ...]] = {}
    for index in itertools.product(*(range(extent) for extent in shape)):
        given = index_map(*index)
        listed = given if isinstance(given, (list, tuple)) else [given]
        place = tuple(int(k) for k in listed if k is not AXIS_SEPARATOR)
        if place in cells:
            raise InputError(f"{cells[place]} and {index} both lie at {place}: this is no layout")
        cells[place] = index
    rank = len(next(iter(cells)))
    extents = tuple(physical or (max(p[k] for p in cells) + 1 for k in range(rank)))
    if any(not 0 <= p[k] < extents[k] for p in cells for k in range(rank)):
        raise InputError(f"the map leaves the physical extents {list(extents)}")
    rows = list(itertools.product(*(range(extent) for extent in extents[:-1])))
    columns = extents[-1]
    if len(rows) * columns > MOST:
        raise InputError(f"a picture of {len(rows) * columns} cells; at most {MOST} are possible")
    label = 16 + 9 * max(len(str(list(row))) for row in rows)
    width, height = label + columns * WIDTH + 8, len(rows) * HEIGHT + 34
    title = html.escape(f"{name}{list(shape)} in {list(extents)}")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{title}" '
        'font-family="sans-serif" font-size="11">',
        f'<text x="4" y="16" fill="#777">{title}; grey is padding</text>',
    ]
    for r, row in enumerate(rows):
        y = 26 + r * HEIGHT
        out.append(f'<text x="4" y="{y + 16}" fill="#777">{html.escape(str(list(row)))}</text>')
        for c in range(columns):
            index = cells.get((*row, c), ())
            x = label + c * WIDTH
            fill = "#d9d9d9" if not index else _tint(index[0])
            out.append(f'<rect x="{x}" y="{y}" width="{WIDTH - 2}" height="{HEIGHT - 2}" fill="{fill}" />')
            if index:
                text = ",".join(map(str, index))
                out.append(f'<text x="{x + WIDTH / 2 - 1:.0f}" y="{y + 15}" text-anchor="middle">{text}</text>')
    return Picture("\n".join([*out, "</svg>"]) + "\n")
