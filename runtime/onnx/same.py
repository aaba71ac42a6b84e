"""Operators of the standard that are one op: a row for both ways, by which one is written and read."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...tape import ops

Function = Callable[..., Any]
Rows = Mapping[str, Function]

UNARY: Rows = {
    "Abs": ops.absolute, "Acos": ops.acos, "Acosh": ops.acosh, "Asin": ops.asin, "Asinh": ops.asinh, "Atan": ops.atan,
    "Atanh": ops.atanh, "Ceil": ops.ceil, "Cos": ops.cos, "Cosh": ops.cosh, "Erf": ops.erf, "Exp": ops.exp,
    "Floor": ops.floor, "HardSwish": ops.hardswish, "Log": ops.log, "Mish": ops.mish, "Neg": ops.neg,
    "Not": ops.logical_not, "Reciprocal": ops.inv, "Relu": ops.relu, "Round": ops.round,
    "Sigmoid": ops.sigmoid, "Sign": ops.sign, "Sin": ops.sin, "Sinh": ops.sinh,
    "Softplus": ops.softplus, "Softsign": ops.softsign, "Tan": ops.tan, "Tanh": ops.tanh,
}  # fmt: skip

BINARY: Rows = {
    "Add": ops.add, "And": ops.logical_and, "Div": ops.div, "Equal": ops.equal, "Mul": ops.mul, "Or": ops.logical_or,
    "Sub": ops.sub, "Xor": ops.logical_xor,
}  # fmt: skip

ORDERS: Rows = {
    "Greater": ops.greater, "GreaterOrEqual": ops.greater_equal, "Less": ops.less, "LessOrEqual": ops.less_equal,
}  # fmt: skip
"""Comparisons that the standard has for numbers alone."""

FOLDED: Rows = {"Max": ops.maximum, "Min": ops.minimum}
"""Operators on any number of inputs."""

REDUCTIONS: Rows = {
    "ReduceLogSumExp": ops.logsumexp, "ReduceMax": ops.reduce_max, "ReduceMean": ops.reduce_mean,
    "ReduceMin": ops.reduce_min, "ReduceProd": ops.prod, "ReduceSum": ops.reduce_sum,
}  # fmt: skip
"""Along axes that stay with size 1 or go."""


class WithAttribute(NamedTuple):
    """An op of one input and one attribute, what the standard calls that, and where it is left out there."""

    op: Function
    attribute: str
    called: str
    default: Any


ATTRIBUTES: Mapping[str, WithAttribute] = {
    "Celu": WithAttribute(ops.celu, "alpha", "alpha", 1.0),
    "Elu": WithAttribute(ops.elu, "alpha", "alpha", 1.0),
    "Gelu": WithAttribute(ops.gelu, "approximate", "approximate", "none"),
    "LeakyRelu": WithAttribute(ops.leaky_relu, "negative_slope", "alpha", 0.01),
}
