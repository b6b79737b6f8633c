"""The most additions and multiplications that a core does in a second, and bytes that it reads, by kernels of our own.

A product from packed panels whose tile stays in registers, and whose panels stay in the first cache.
Which tile is the best depends on the processor: the fastest counts.
"""

from pathlib import Path

ROWS, INNER, COLUMNS = 168, 256, 64
TILES = ((6, 16), (14, 32), (8, 48), (8, 8))  # rows, columns: AVX2, AVX-512, AVX-512, NEON

KERNEL = """\
from tvm.script import ir as I
from tvm.script import tir as T
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({it}, {k}, {r}), "float32"), B: T.Buffer(({jt}, {k}, {c}), "float32"),
             C: T.Buffer(({it}, {jt}, {r}, {c}), "float32")):
        for j in range({jt}):
            for i in range({it}):
                tile = T.decl_buffer(({r}, {c}), "float32", scope="local")
                for r in T.unroll({r}):
                    for c in T.vectorized({c}):
                        tile[r, c] = T.float32(0)
                for k in T.serial({k}, annotations={{"pragma_no_unroll": 1}}):
                    for r in T.unroll({r}):
                        for c in T.vectorized({c}):
                            tile[r, c] = tile[r, c] + A[i, k, r] * B[j, k, c]
                for r in T.unroll({r}):
                    for c in T.vectorized({c}):
                        C[i, j, r, c] = tile[r, c]
"""


def kernels(folder):
    """Files of the kernels, each with its operations."""
    for rows, columns in TILES:
        sizes = {"it": ROWS // rows, "jt": max(1, COLUMNS // columns), "k": INNER}
        path = Path(folder) / f"peak_{rows}x{columns}.py"
        path.write_text(KERNEL.format(r=rows, c=columns, **sizes))
        yield path, 2 * sizes["it"] * rows * sizes["jt"] * columns * INNER


def measure(make, folder, seconds=0.3):
    """Operations in a second, of one thread. `make` gives a timer for a file."""
    best = 0.0
    for path, operations in kernels(folder):
        _, shortest = make(path).turn(seconds)
        best = max(best, operations / shortest)
    return best


# Rows of 64 numbers: no cache holds them all.
LINES = 1 << 20

READ = """\
from tvm.script import ir as I
from tvm.script import tir as T
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({parts}, {rows}, 64), "float32"), C: T.Buffer(({parts}, 64), "float32")):
        for p in T.parallel({parts}):
            sums = T.decl_buffer((4, 16), "float32", scope="local")
            for v in T.unroll(4):
                for l in T.vectorized(16):
                    sums[v, l] = T.float32(0)
            for i in range({rows}):
                for v in T.unroll(4):
                    for l in T.vectorized(16):
                        sums[v, l] = sums[v, l] + A[p, i, v * 16 + l]
            for v in T.unroll(4):
                for l in T.vectorized(16):
                    C[p, v * 16 + l] = sums[v, l]
"""


def read_rate(make, folder, threads, seconds=0.5):
    """Bytes of memory that so many threads read in a second. `make` gives a timer for a file."""
    path = Path(folder) / "read.py"
    path.write_text(READ.format(parts=threads, rows=LINES // threads))
    _, shortest = make(path).turn(seconds)
    return LINES * 64 * 4 / shortest


def last_cache():
    """Bytes of the largest cache, where the system tells; else what servers of today have."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    units = {"K": 1 << 10, "M": 1 << 20}
    found = [text.strip() for text in (path.read_text() for path in sizes)]
    return max((int(t[:-1]) * units[t[-1]] for t in found if t[-1:] in units), default=32 << 20)
