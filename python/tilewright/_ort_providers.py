"""ONNX Runtime's names for what computes: one of them is here."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

__all__ = ["checked_providers", "get_all_providers", "get_available_providers", "get_device"]

#: Names that ONNX Runtime has for what computes.
_PROVIDERS = [
    "TensorrtExecutionProvider",
    "NvTensorRTRTXExecutionProvider",
    "CUDAExecutionProvider",
    "MIGraphXExecutionProvider",
    "ROCMExecutionProvider",
    "OpenVINOExecutionProvider",
    "DnnlExecutionProvider",
    "VitisAIExecutionProvider",
    "QNNExecutionProvider",
    "NnapiExecutionProvider",
    "VSINPUExecutionProvider",
    "JsExecutionProvider",
    "CoreMLExecutionProvider",
    "ArmNNExecutionProvider",
    "ACLExecutionProvider",
    "DmlExecutionProvider",
    "RknpuExecutionProvider",
    "WebNNExecutionProvider",
    "WebGpuExecutionProvider",
    "XnnpackExecutionProvider",
    "CANNExecutionProvider",
    "AzureExecutionProvider",
    "CPUExecutionProvider",
]


def get_available_providers() -> list[str]:
    """The providers: one."""
    return ["CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    """The names of providers that ONNX Runtime knows; one of them is here."""
    return list(_PROVIDERS)


def get_device() -> str:
    """The device: ``CPU``."""
    return "CPU"


def checked_providers(
    providers: Sequence[Any] | None, provider_options: Sequence[Any] | None
) -> dict[str, dict[str, str]]:
    """The providers that are here, with their options; what is not here is warned of, or refused.

    Raises:
        ValueError: for what is no list of names, or of names with options.
        RuntimeError: for names that ONNX Runtime does not know.
    """
    if providers is None:
        return {"CPUExecutionProvider": {}}
    if provider_options is not None:
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(name, str) for name in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(given, dict) for given in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        pairs = list(zip(providers, provider_options))
    else:
        pairs = []
        for given in [providers] if isinstance(providers, str) else providers:
            if isinstance(given, str):
                pairs.append((given, {}))
            elif (
                isinstance(given, tuple)
                and len(given) == 2
                and isinstance(given[0], str)
                and isinstance(given[1], dict)
            ):
                pairs.append(given)
            else:
                raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    found: dict[str, dict[str, str]] = {}
    for name, options in pairs:
        if name not in _PROVIDERS:
            raise RuntimeError(f"Unknown Provider Type: {name}")
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
        elif name not in get_available_providers():
            here = ", ".join(get_available_providers())
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names.Available providers: '{here}'",
                stacklevel=4,
            )
        else:
            found[name] = {str(key): str(value) for key, value in options.items()}
    # The CPU computes what nothing else does.
    return found or {"CPUExecutionProvider": {}}
