"""The package ``onnx``, which not everybody has."""

from importlib import import_module
from typing import Any

OPSET = 20
"""The version of the standard operators that files name: the first with Gelu, and runtimes of 2024 know it."""


def onnx(call: str) -> Any:
    """The package. Raises ModuleNotFoundError that says how to get it."""
    try:
        import_module("onnx.helper")
        import_module("onnx.checker")
        return import_module("onnx")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{call}: expected onnx to be installed: pip install 'dgrr[onnx]'", name="onnx"
        ) from None
