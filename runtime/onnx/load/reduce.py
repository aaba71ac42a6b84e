"""Operators that make one element of many, and softmax."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from ....tape import AnyVar, ops
from ..same import REDUCTIONS
from .operator import IMPORTERS, Operator, imports

BEFORE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "ReduceL1": (ops.absolute, lambda x: x),
    "ReduceL2": (ops.square, ops.sqrt),
    "ReduceSumSquare": (ops.square, lambda x: x),
    "ReduceLogSum": (lambda x: x, ops.log),
}
"""Sums of something, of which something is taken."""


def _reduced(op: Callable[..., Any], n: Operator, x: AnyVar) -> Any:
    axes, keep = n.axes(), bool(n.get("keepdims", 1))
    if axes is None or not axes:
        return x if n.get("noop_with_empty_axes", 0) else op(x, None, keepdims=keep)
    return op(x, axes, keepdims=keep)


def _reduction(op: Callable[..., Any], n: Operator) -> Any:
    return _reduced(op, n, n.var(0))


def _sum_of(before: Callable[[Any], Any], after: Callable[[Any], Any], n: Operator) -> Any:
    return after(_reduced(ops.reduce_sum, n, before(n.var(0))))


IMPORTERS.update({kind: partial(_reduction, op) for kind, op in REDUCTIONS.items()})
IMPORTERS.update({kind: partial(_sum_of, *parts) for kind, parts in BEFORE.items()})


@imports("ArgMax", "ArgMin")
def _position(n: Operator) -> Any:
    """The first of equal ones."""
    if n.get("select_last_index", 0):
        raise n.error("expected select_last_index=0, got 1")
    op = ops.argmax if n.kind == "ArgMax" else ops.argmin
    return op(n.var(0), n.get("axis", 0), keepdims=bool(n.get("keepdims", 1)))


@imports("Softmax", "LogSoftmax")
def _softmax(n: Operator) -> Any:
    """Along one axis; before version 13 along all from one on."""
    op, x = ops.softmax if n.kind == "Softmax" else ops.log_softmax, n.var(0)
    if n.opset >= 13:
        return op(x, n.get("axis", -1))
    axis, sizes = n.get("axis", 1), tuple(x.shape)
    return ops.reshape(op(ops.reshape(x, (prod(sizes[:axis]), prod(sizes[axis:]))), -1), sizes)


def _running(op: Callable[..., Any], first: float, n: Operator) -> Any:
    """From the last element if reversed; without the element itself if exclusive."""
    x = n.var(0)
    axis = int(n.number(1, 0)) % len(x.shape)
    x = ops.flip(x, axis) if n.get("reverse", 0) else x
    if n.get("exclusive", 0):
        widths = tuple([(1, -1) if a == axis else (0, 0) for a in range(len(x.shape))])
        x = ops.pad(x, widths, first)
    made = op(x, axis)
    return ops.flip(made, axis) if n.get("reverse", 0) else made


IMPORTERS["CumSum"] = partial(_running, ops.cumsum, 0.0)
IMPORTERS["CumProd"] = partial(_running, ops.cumprod, 1.0)
