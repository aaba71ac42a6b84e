"""Ops of one element each."""

from functools import partial

import numpy as np

from ..same import ATTRIBUTES, BINARY, FOLDED, ORDERS, UNARY, WithAttribute
from .graph import EXPORTERS, OpCall, exports

SAME = {"pow": "Pow", "selu": "Selu", "stop_gradient": "Identity"}
"""Ops that an operator does by itself, of the same inputs, beside those of `same`."""

WITH_NUMBER = {"scale": ("Mul", "c"), "shift": ("Add", "c"), "power": ("Pow", "exponent"), "divide": ("Div", "n"),
               "over": ("Div", "c")}  # fmt: skip
"""Ops that an operator does with a number, which is an attribute."""


def _same(kind: str, c: OpCall) -> str:
    return c(kind, *[name for name in c.inputs if name is not None])


def _with_number(kind: str, attribute: str, c: OpCall) -> str:
    return c(kind, c.x, c.number(c.attrs[attribute]))


def _ordered(kind: str, c: OpCall) -> str:
    if c.spec(0).dtype != np.bool_:
        return c(kind, c.x, c.input(1))
    whole = c.graph.onnx.TensorProto.INT32
    return c(kind, c("Cast", c.x, to=whole), c("Cast", c.input(1), to=whole))


def _with_attribute(kind: str, row: WithAttribute, c: OpCall) -> str:
    value = type(row.default)(c.attrs[row.attribute])
    return c(kind, c.x, **{row.called: value})


EXPORTERS.update({op.__name__: partial(_same, kind) for kind, op in {**UNARY, **BINARY, **FOLDED}.items()})
EXPORTERS.update({op.__name__: partial(_ordered, kind) for kind, op in ORDERS.items()})
EXPORTERS.update({row.op.__name__: partial(_with_attribute, kind, row) for kind, row in ATTRIBUTES.items()})
EXPORTERS.update({op: partial(_same, kind) for op, kind in SAME.items()})
EXPORTERS.update({op: partial(_with_number, kind, attribute) for op, (kind, attribute) in WITH_NUMBER.items()})


@exports("where")
def _where(c: OpCall) -> str:
    """Of bools by logic, as runtimes do not choose among them."""
    condition, a, b = c.x, c.input(1), c.input(2)
    if c.out.dtype != np.bool_:
        return c("Where", condition, a, b)
    return c("Or", c("And", condition, a), c("And", c("Not", condition), b))


@exports("not_equal")
def _not_equal(c: OpCall) -> str:
    return c("Not", c("Equal", c.x, c.input(1)))


@exports("sqrt")
def _sqrt(c: OpCall) -> str:
    return c("Sqrt", c("Relu", c.x))


@exports("rsqrt")
def _rsqrt(c: OpCall) -> str:
    return c("Reciprocal", c("Sqrt", c.x))


@exports("trunc")
def _trunc(c: OpCall) -> str:
    return c("Mul", c("Sign", c.x), c("Floor", c("Abs", c.x)))


@exports("square")
def _square(c: OpCall) -> str:
    return c("Mul", c.x, c.x)


@exports("log1p")
def _log1p(c: OpCall) -> str:
    return c("Log", c("Add", c.x, c.number(1.0)))


@exports("expm1")
def _expm1(c: OpCall) -> str:
    return c("Sub", c("Exp", c.x), c.number(1.0))


@exports("safe_log")
def _safe_log(c: OpCall) -> str:
    return c("Log", c("Add", c.x, c.number(c.attrs["eps"])))


@exports("silu")
def _silu(c: OpCall) -> str:
    return c("Mul", c.x, c("Sigmoid", c.x))


@exports("logsigmoid")
def _logsigmoid(c: OpCall) -> str:
    return c("Neg", c("Softplus", c("Neg", c.x)))


@exports("relu6")
def _relu6(c: OpCall) -> str:
    return c("Clip", c.x, c.number(0.0), c.number(6.0))


@exports("clamp")
def _clamp(c: OpCall) -> str:
    return c("Clip", c.x, c.number(c.attrs["low"]), c.number(c.attrs["high"]))


@exports("atan2")
def _atan2(c: OpCall) -> str:
    """Of y and x: half a turn is added where x is negative, with the sign of y, and a quarter where it is 0."""
    y, x, zero = c.x, c.input(1), c.number(0.0)
    signed = c("Where", _is_negative(c, y), c.number(-np.pi), c.number(np.pi))
    left = _is_negative(c, x)
    turned = c("Add", c("Atan", c("Div", y, x)), c("Where", left, signed, zero))
    upright = c("Where", c("Equal", y, zero), c("Where", left, signed, y), c("Mul", signed, c.number(0.5)))
    return c("Where", c("Equal", x, zero), upright, turned)


def _is_negative(c: OpCall, x: str) -> str:
    """Whether it is below 0, or -0: its inverse is."""
    return c("Less", c("Where", c("Equal", x, c.number(0.0)), c("Reciprocal", x), x), c.number(0.0))


@exports("keep")
def _keep(c: OpCall) -> str:
    chosen = c.input(1) if c.attrs["wanted"] else c("Not", c.input(1))
    return c("Where", chosen, c.x, c.number(0.0))


@exports("logit_product")
def _logit_product(c: OpCall) -> str:
    missed = c("And", c("Equal", c.x, c.number(np.inf)), c("Less", c.input(1), c.number(1.0)))
    lost = c("Or", c("Equal", c.input(1), c.number(0.0)), missed)
    return c("Where", lost, c.number(0.0), c("Mul", c.x, c.input(1)))


@exports("cast")
def _cast(c: OpCall) -> str:
    kind = c.graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(c.out.dtype))
    return c("Cast", c.x, to=kind)


@exports("mse_loss")
def _mse_loss(c: OpCall) -> str:
    difference = c("Sub", c.x, c.input(1))
    return c("ReduceMean", c("Mul", difference, difference), keepdims=0)
