"""The graph of a step: its data, its text, JSON and drawing, and its verifier."""

from .attributes import canonical
from .errors import IRError, IRSyntaxError
from .graph import IRGraph, IRNode, Role, Value, gradient_name
from .verify import checked, verify

__all__ = [
    "IRError",
    "IRGraph",
    "IRNode",
    "IRSyntaxError",
    "Role",
    "Value",
    "canonical",
    "checked",
    "gradient_name",
    "verify",
]
