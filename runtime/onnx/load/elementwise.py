"""Operators on one element each, which broadcast as numpy does."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from ....tape import AnyVar, Var, ops
from ..same import ATTRIBUTES, BINARY, FOLDED, ORDERS, UNARY, WithAttribute
from .operator import IMPORTERS, Operator, imports


def together(*values: AnyVar) -> list[AnyVar]:
    """Values in their common shape."""
    shape = np.broadcast_shapes(*[tuple(x.shape) for x in values])
    return [x if tuple(x.shape) == shape else ops.broadcast_to(x, shape) for x in values]


def _unary(op: Callable[[Any], Any], n: Operator) -> Any:
    return op(n.var(0))


def _binary(op: Callable[[Any, Any], Any], n: Operator) -> Any:
    return op(*together(n.var(0), n.var(1)))


def _folded(op: Callable[[Any, Any], Any], n: Operator) -> Any:
    return reduce(op, together(*n.vars()))


def _with_attribute(row: WithAttribute, n: Operator) -> Any:
    return row.op(n.var(0), **{row.attribute: n.get(row.called, row.default)})


IMPORTERS.update({kind: partial(_unary, op) for kind, op in UNARY.items()})
IMPORTERS.update({kind: partial(_binary, op) for kind, op in {**BINARY, **ORDERS}.items()})
IMPORTERS.update({kind: partial(_folded, op) for kind, op in {**FOLDED, "Sum": ops.add}.items()})
IMPORTERS.update({kind: partial(_with_attribute, row) for kind, row in ATTRIBUTES.items()})


@imports("Identity")
def _identity(n: Operator) -> Any:
    return n.var(0)


@imports("Dropout", constants=(1, 2))
def _dropout(n: Operator) -> Any:
    """What it is given: dropout leaves all in evaluation."""
    if n.has(2) and n.constant(2).any():
        raise n.error("expected dropout in evaluation, got training_mode=True")
    return n.var(0)


@imports("Mean")
def _mean(n: Operator) -> Any:
    return _folded(ops.add, n) / float(len(n.inputs))


@imports("Sqrt")
def _sqrt(n: Operator) -> Any:
    x = n.var(0)
    return ops.where(x < 0.0, ops.broadcast_to(n.on_tape(np.asarray(np.nan, x.dtype)), tuple(x.shape)), ops.sqrt(x))


@imports("Pow")
def _pow(n: Operator) -> Any:
    """By the cheaper op where the exponent is a constant number."""
    exponent = None if isinstance(n.inputs[1], Var) else n.constant(1)
    if exponent is not None and exponent.size == 1:
        return ops.power(n.var(0), float(exponent.reshape(())))
    return ops.pow(*together(n.var(0), n.var(1)))


@imports("ThresholdedRelu")
def _thresholded_relu(n: Operator) -> Any:
    x = n.var(0)
    return ops.where(x > n.get("alpha", 1.0), x, x * 0.0)


@imports("Selu")
def _selu(n: Operator) -> Any:
    alpha, gamma = n.get("alpha", 1.67326319217681884765625), n.get("gamma", 1.05070102214813232421875)
    return ops.elu(n.var(0), alpha) * gamma


@imports("PRelu")
def _prelu(n: Operator) -> Any:
    x, slope = together(n.var(0), n.var(1))
    return ops.where(x < 0.0, x * slope, x)


@imports("HardSigmoid")
def _hard_sigmoid(n: Operator) -> Any:
    return ops.clamp(n.var(0) * n.get("alpha", 0.2) + n.get("beta", 0.5), 0.0, 1.0)


@imports("Clip", constants=(1, 2))
def _clip(n: Operator) -> Any:
    low = n.get("min", None) if n.opset < 11 else n.number(1, -np.inf)
    high = n.get("max", None) if n.opset < 11 else n.number(2, np.inf)
    return ops.clamp(n.var(0), -np.inf if low is None else low, np.inf if high is None else high)


@imports("Where")
def _where(n: Operator) -> Any:
    return ops.where(*together(n.var(0), n.var(1), n.var(2)))


@imports("Cast")
def _cast(n: Operator) -> Any:
    kinds = {1: np.float32, 7: np.int64, 9: np.bool_, 11: np.float64}
    if n.attributes["to"] not in kinds:
        raise n.error("expected a cast to float32, float64, int64 or bool, got one to another type")
    return ops.cast(n.var(0), np.dtype(kinds[n.attributes["to"]]))


@imports("CastLike")
def _cast_like(n: Operator) -> Any:
    return ops.cast(n.var(0), n.var(1).dtype)


@imports("Mod")
def _mod(n: Operator) -> Any:
    """The rest has the sign of the divisor, or by ``fmod`` of what is divided."""
    a, b = together(n.var(0), n.var(1))
    if not n.get("fmod", 0):
        return ops.remainder(a, b)
    if a.dtype.kind == "i":
        rest = ops.remainder(a, b)
        other = (rest != 0) & ((a < 0) != (b < 0))
        return ops.where(other, rest - b, rest)
    size, rest = ops.absolute(b), a - ops.trunc(a / b) * b
    over = ops.sign(rest) * ops.sign(a) < 0.0  # the quotient was rounded to the next whole number
    return ops.where(over, rest + ops.sign(a) * size, rest)


@imports("IsNaN")
def _is_nan(n: Operator) -> Any:
    return n.var(0) != n.var(0)


@imports("IsInf")
def _is_inf(n: Operator) -> Any:
    x = n.var(0)
    above, below = n.get("detect_positive", 1), n.get("detect_negative", 1)
    found = ops.absolute(x) if above and below else x if above else -x
    return found == np.inf if above or below else n.on_tape(np.zeros(tuple(x.shape), np.bool_))


@imports("Swish")
def _swish(n: Operator) -> Any:
    x = n.var(0)
    return x * ops.sigmoid(x * n.get("alpha", 1.0))
