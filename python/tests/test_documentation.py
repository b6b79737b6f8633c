"""Examples in the documentation run, and everything public is documented."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest
import tilewright

MODULES = sorted(
    info.name for info in pkgutil.iter_modules(tilewright.__path__) if not info.name.startswith("_")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    try:
        module = importlib.import_module(f"tilewright.{name}")
    except ModuleNotFoundError as error:
        # What only some users have, an extra of the package.
        if error.name not in ("ray", "torch", "onnx", "onnxscript"):
            raise
        pytest.skip(f"{error.name} is not installed")
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", tilewright.__all__)
def test_what_is_public_is_documented(name: str) -> None:
    item = getattr(tilewright, name)
    if inspect.ismodule(item) or inspect.isclass(item) or callable(item):
        assert inspect.getdoc(item)
    for member, value in vars(item).items() if inspect.isclass(item) else ():
        if callable(value) and not member.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{member}"
