#!/usr/bin/env python3
"""What a call from Python costs over the steps of the run, with two inputs; in microseconds.

The shortest of many calls of an executable that does next to nothing, less the shortest time that its
steps take by `profile`. Run it where `tilewright` is installed.
"""

import time

import numpy as np

import tilewright

TEXT = """
@T.prim_func
def add(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + B[vi]
"""


def shortest(call, count=200, repeat=500):
    """The least mean time of some calls in a row."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def main():
    exe = tilewright.parse(TEXT).compile(threads=1)
    a, b = np.ones(8, np.float32), np.ones(8, np.float32)
    steps = exe.profile(a, b, repeat=10000).total
    for what, call in [
        ("by position", lambda: exe(a, b)),
        ("by name", lambda: exe(A=a, B=b)),
        ("numpy.add", lambda: np.add(a, b)),
    ]:
        taken = shortest(call)
        print(f"{what:12} {taken * 1e6:6.2f}, without the steps {(taken - steps) * 1e6:6.2f}")


if __name__ == "__main__":
    main()
