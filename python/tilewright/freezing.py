"""Modules of PyTorch whose weights are constants on purpose.

``torch.compile(backend="tilewright")`` takes parameters and buffers as inputs of each call, so that none
is ever stale. Those of a frozen module are constants: they are folded and packed once.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["freeze", "is_frozen"]

#: The attribute of a tensor that is frozen.
_MARK = "_tilewright_frozen"

#: A ``torch.nn.Module``.
M = TypeVar("M", bound=Any)


def freeze(module: M) -> M:
    """Says that the weights of a module of PyTorch do not change any more, and gives the module.

    It is put into evaluation mode, and its parameters no longer require gradients. What
    ``torch.compile(backend="tilewright")`` makes of it then has weights as constants. A weight that is
    replaced, or changed in a way that PyTorch counts (in place, ``load_state_dict``), is taken anew at
    the next call, which compiles; a change through ``weight.data`` in the same memory is not noticed.

    Args:
        module: A ``torch.nn.Module``, before or after it was compiled.
    """
    module.eval().requires_grad_(False)
    for tensor in (*module.parameters(), *module.buffers()):
        setattr(tensor, _MARK, True)
    return module


def is_frozen(tensor: Any) -> bool:
    """Whether a tensor is a weight of a frozen module."""
    return getattr(tensor, _MARK, False) is True
