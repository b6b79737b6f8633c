"""Do two modules compute the same outputs for every input?"""

from __future__ import annotations

from typing import NamedTuple

from . import _native
from ._types import Dims, sizes
from .module import Module

__all__ = ["Verified", "Witness", "verify"]


class Witness(NamedTuple):
    """An element that differs.

    Attributes:
        cell: Which one.
        terms: What it is in both modules, as expressions of the inputs.
        values: What it is there for the inputs.
        inputs: Elements of inputs and their values.
    """

    cell: str
    terms: tuple[str, ...]
    values: tuple[str, ...]
    inputs: dict[str, str]


class Verified:
    """The answer; true where the modules are equal.

    Attributes:
        answer: ``equal``, ``differ`` or ``undecided``.
        text: What shows that they differ, or why there is no answer.
        notes: How it was proved, and what the proof relies on.
        witness: The first element that differs.
    """

    def __init__(
        self,
        raw: tuple[
            str,
            str,
            list[str],
            tuple[str, list[str], list[str], list[tuple[str, str]]] | None,
        ],
    ) -> None:
        self.answer, self.text = raw[0], raw[1].rstrip("\n")
        self.notes = tuple(raw[2])
        self.witness: Witness | None = None
        if raw[3] is not None:
            cell, terms, values, inputs = raw[3]
            self.witness = Witness(cell.replace("`", ""), tuple(terms), tuple(values), dict(inputs))

    def __bool__(self) -> bool:
        return self.answer == "equal"

    def __str__(self) -> str:
        return self.text or "\n".join(self.notes) or self.answer

    def __repr__(self) -> str:
        return f"<Verified: {self.answer}>"


def verify(
    a: Module,
    b: Module,
    *,
    dims: Dims = None,
    reassociate: bool = False,
    real: bool = False,
    steps: int | None = None,
) -> Verified:
    """Decides whether two modules compute the same outputs for every input.

    Functions are paired by name, or by being the entries; parameters by position. Equality is a proof
    for all data; where sizes are open and no proof is found, some sizes are tried, which finds
    differences and proves nothing.

    Args:
        a: A module. What it leaves arbitrary may be anything in the other one.
        b: Another one.
        dims: Sizes that both leave open, or their ranges, for which the answer is to hold.
        reassociate: Whether sums and products of floats count as equal in any order.
        real: Whether floats count as real numbers where models are compared call by call: also
            divisions by constants as products, and constants that were rounded differently as one.
        steps: Gives up after so many expressions and statements.

    Raises:
        tilewright.InputError: where functions cannot be paired.

    >>> import tilewright
    >>> text = '''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    ...     for i in range(8):
    ...         B[i] = A[i] {}
    ... '''
    >>> one = tilewright.parse(text.format("* 2"))
    >>> bool(tilewright.verify(one, tilewright.parse(text.format("+ A[i]"))))
    True
    >>> found = tilewright.verify(one, tilewright.parse(text.format("+ 2")))
    >>> found.answer, found.witness.cell
    ('differ', 'B[0]')
    """
    given = sizes(dims, None, None)[0] or {}
    return Verified(_native.verify_modules(a._raw, b._raw, given, (reassociate, real), steps))
