"""The page `docs/performance.md` with its plot, from the results of `compare.py` and `kernels.py`."""

import math
import platform
import statistics
from pathlib import Path

import peers

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEADER = [
    "model", "inputs", "ms", "best ms", "GFLOP/s", "of peak", "of floor", "best peer", "its ms", "of floor",
    "ratio", "compile s", "memory MB",
]


def best_peer(row):
    """Name and median of the fastest peer."""
    others = [(e["median"], name) for name, e in row["engines"].items() if name != "tilewright"]
    return min(others)[::-1] if others else None


def cells(row):
    """The texts of a row of the table."""
    if "engines" not in row:
        return [row["model"], row["inputs"], *["-"] * (len(HEADER) - 2)]
    own, peer = row["engines"]["tilewright"], best_peer(row)
    rate = row["flops"] / own["median"]
    return [
        row["model"],
        row["inputs"],
        f"{1e3 * own['median']:.3f}",
        f"{1e3 * own['best']:.3f}",
        f"{rate / 1e9:.1f}",
        f"{rate / row['peak']:.2f}",
        f"{row['floor'] / own['median']:.2f}" if row["floor"] else "-",
        peers.NAMES[peer[0]] if peer else "-",
        f"{1e3 * peer[1]:.3f}" if peer else "-",
        f"{row['floor'] / peer[1]:.2f}" if peer and row["floor"] else "-",
        f"{row['ratio']:.2f}" if "ratio" in row else "-",
        f"{own['compile']:.2f}",
        f"{own['memory'] / 1e6:.0f}",
    ]


def processor():
    """The processor's name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def write(rows, kernels, args):
    """Writes the page, and the plot where there are kernels."""
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    flops = max((row["peak"] for row in rows), default=0.0)
    text = [
        "# Performance",
        "Written by `bench/compare.py --report`. All took turns in one run, "
        f"{args.threads} thread(s) each on the same cores, {args.rounds} rounds of {args.seconds:g} s; "
        f"{processor()}; peak of these cores by a kernel of our own {flops / 1e9:.1f} GFLOP/s. "
        "A time is the median of the rounds' medians; the ratio is our time over that of the best "
        "peer, the median over the rounds. GFLOP/s count useful operations of contractions only. *Of floor* is what part of a time the contractions take "
        "at the least: their operations at the peak, or their weights as fast as memory is read, where no cache holds "
        "those of the model.",
        markdown(HEADER, [cells(row) for row in rows]),
    ]
    if ratios:
        text.append(f"Geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}.")
    others = sorted({n for row in rows for n in row.get("engines", {}) if n != "tilewright"})
    if others:
        table = []
        for row in rows:
            found = row.get("engines", {})
            part = lambda n, key, by: f"{by * found[n][key]:.3g}" if n in found else "-"
            table.append([row["model"], *(part(n, "median", 1e3) for n in others),
                          *(part(n, "compile", 1) for n in others)])
        names = [peers.NAMES[n] for n in others]
        header = ["model", *(f"{n} ms" for n in names), *(f"{n} compile s" for n in names)]
        text += ["## Every peer", markdown(header, table)]
    if kernels:
        (DOCS / "performance.svg").write_text(plot(kernels))
        text += [
            "## Sizes",
            "Time per useful operation of single contractions, over that of the peak, by "
            "`bench/kernels.py`.",
            "![Time per operation by size](performance.svg)",
        ]
    (DOCS / "performance.md").write_text("\n\n".join(text) + "\n")


def plot(kernels):
    """A panel for each kind of contraction: size against time per operation, one is the peak."""
    width, height, margin, gap = 640, 260, 56, 40
    kinds = sorted({k["kind"] for k in kernels if k["size"]})
    colours = {"ours": "#c23b22", "onnxruntime": "#3b6ea5"}
    names = {"ours": "Tilewright", "onnxruntime": "ONNX Runtime"}
    total = len(kinds) * (height + gap) + margin
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2 * margin}" height="{total}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, kind in enumerate(kinds):
        rows = sorted((k for k in kernels if k["kind"] == kind and k["size"]), key=lambda k: k["size"])
        slow = {who: [k[who] * k["peak"] / k["flops"] for k in rows] for who in colours}
        top, last = margin // 2 + number * (height + gap), max(k["size"] for k in rows)
        most = max(2.0, max(max(values) for values in slow.values()))
        x = lambda size: margin + width * size / last
        y = lambda value: top + height * (1 - math.log2(max(value, 1.0)) / math.log2(most))
        out.append(f'<text x="{margin}" y="{top - 6}">{kind}: time per operation, 1 is the peak</text>')
        step = 1.0
        while step <= most:
            out.append(
                f'<line x1="{margin}" x2="{margin + width}" y1="{y(step):.1f}" y2="{y(step):.1f}" '
                'stroke="#ddd"/>'
                f'<text x="{margin - 6}" y="{y(step) + 4:.1f}" text-anchor="end">{step:g}</text>'
            )
            step *= 2
        for size in range(0, last + 1, 32):
            out.append(
                f'<text x="{x(size):.1f}" y="{top + height + 16}" text-anchor="middle">{size}</text>'
            )
        for place, (who, values) in enumerate(slow.items()):
            points = " ".join(f"{x(k['size']):.1f},{y(v):.1f}" for k, v in zip(rows, values))
            out.append(
                f'<polyline points="{points}" fill="none" stroke="{colours[who]}" stroke-width="1.5"/>'
                f'<text x="{margin + width - 8}" y="{top + 16 + 16 * place}" text-anchor="end" '
                f'fill="{colours[who]}">{names[who]}</text>'
            )
    return "\n".join([*out, "</svg>"]) + "\n"
