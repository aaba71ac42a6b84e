"""The package ``onnx``, which not everybody has."""

from typing import Any

from ...base.packages import package

OPSET = 20
"""The version of the standard operators that files name: the first with Gelu, and runtimes of 2024 know it."""


def onnx(call: str) -> Any:
    """The package. Raises ModuleNotFoundError that says how to get it."""
    for module in ("onnx.helper", "onnx.checker"):
        package(call, module)
    return package(call, "onnx")
