"""Ops that make one element of many, and softmax."""

from functools import partial
from math import prod

import numpy as np

from ....tape.values.shape import normal_axes
from ..same import REDUCTIONS
from .graph import EXPORTERS, OpCall, exports


def axes_of(c: OpCall) -> tuple[int, ...]:
    """The axes that go, counted from the front."""
    return normal_axes("onnx.export", c.attrs["axis"], len(c.shape))


def _reduction(kind: str, c: OpCall) -> str:
    axes = axes_of(c)
    return c(kind, c.x, c.sizes(*axes), keepdims=int(c.attrs["keepdims"])) if axes else c("Identity", c.x)


EXPORTERS.update({op.__name__: partial(_reduction, kind) for kind, op in REDUCTIONS.items()})


@exports("var")
def _var(c: OpCall) -> str:
    axes = axes_of(c)
    if not axes:
        return c("Mul", c.x, c.number(0.0))
    centred = c("Sub", c.x, c("ReduceMean", c.x, c.sizes(*axes), keepdims=1))
    total = c("ReduceSum", c("Mul", centred, centred), c.sizes(*axes), keepdims=int(c.attrs["keepdims"]))
    return c("Div", total, c.number(prod(c.shape[axis] for axis in axes) - c.attrs["correction"]))


def _position(kind: str, c: OpCall) -> str:
    """Positions count through the axes that go as if they were one, so that one is made of them."""
    axes = axes_of(c)
    if len(axes) == 1:
        return c(kind, c.x, axis=axes[0], keepdims=int(c.attrs["keepdims"]))
    others = [axis for axis in range(len(c.shape)) if axis not in axes]
    moved = c("Transpose", c.x, perm=[*others, *axes]) if axes else c.x
    one = c("Reshape", moved, c.sizes(*[c.shape[axis] for axis in others], prod(c.shape[axis] for axis in axes)))
    return c("Reshape", c(kind, one, axis=len(others), keepdims=0), c.sizes(*c.out.shape), allowzero=1)


EXPORTERS["argmax"] = partial(_position, "ArgMax")
EXPORTERS["argmin"] = partial(_position, "ArgMin")


def _softmax(kind: str, c: OpCall) -> str:
    return c(kind, c.x, axis=c.attrs["axis"])


EXPORTERS["softmax"] = partial(_softmax, "Softmax")
EXPORTERS["log_softmax"] = partial(_softmax, "LogSoftmax")


@exports("cumsum")
def _cumsum(c: OpCall) -> str:
    return c("CumSum", c.x, c.sizes(c.attrs["axis"]))


def _axis(c: OpCall) -> int:
    """The one axis along which the op goes, counted from the front."""
    axis: int = c.attrs["axis"]
    return axis % len(c.shape)


def _delayed(c: OpCall, x: str, by: int, first: str) -> str:
    """``x`` moved so many places further along the axis, with a number in the first ones."""
    axis = _axis(c)
    kept = c("Slice", x, c.sizes(0), c.sizes(c.shape[axis] - by), c.sizes(axis))
    return c("Pad", kept, c.sizes(by, 0), first, c.sizes(axis))


def _spans(c: OpCall) -> list[int]:
    """1, 2, 4, …: what is known of so many neighbours gives that of twice as many."""
    n = c.shape[_axis(c)]
    return [1 << k for k in range(max(n - 1, 0).bit_length())]


@exports("cumprod")
def _cumprod(c: OpCall) -> str:
    made, one = c.x, c.number(1.0)
    for by in _spans(c):
        made = c("Mul", made, _delayed(c, made, by, one))
    return c("Identity", made)


def _last_extreme(c: OpCall, *, largest: bool) -> str:
    """Where along the axis the extreme so far stands last: of two neighbours the later, unless the other is better."""
    kind, worst = ("GreaterOrEqual", -np.inf) if largest else ("LessOrEqual", np.inf)
    axis, rank = _axis(c), len(c.shape)
    values, first = c.x, c.graph.constant(np.asarray(worst, c.spec(0).dtype))
    places = np.arange(c.shape[axis]).reshape([-1 if a == axis else 1 for a in range(rank)])
    indices = c("Expand", c.graph.constant(places), c.sizes(*c.shape))
    for by in _spans(c):
        before = _delayed(c, values, by, first)
        stays = c(kind, values, before)
        indices = c("Where", stays, indices, _delayed(c, indices, by, c.graph.constant(np.asarray(0))))
        values = c("Where", stays, values, before)
    return c("Identity", indices)


EXPORTERS["cumargmax"] = partial(_last_extreme, largest=True)
EXPORTERS["cumargmin"] = partial(_last_extreme, largest=False)


@exports("running_place")
def _running_place(c: OpCall) -> str:
    """In the whole array: so many rows of the axis further, from the place of the first."""
    axis = _axis(c)
    firsts = np.arange(prod(c.shape)).reshape(c.shape).take([0] if c.shape[axis] else [], axis)
    along = c("Mul", _last_extreme(c, largest=c.attrs["largest"]), c.sizes(prod(c.shape[axis + 1 :])))
    return c("Add", along, c.graph.constant(firsts))


@exports("argsort", "argtopk")
def _argsort(c: OpCall) -> str:
    axis = _axis(c)
    whole = c("Cast", c.x, to=c.graph.onnx.TensorProto.INT64) if c.spec(0).dtype == np.bool_ else c.x
    n = c.sizes(c.attrs.get("k", c.shape[axis]))
    return c("TopK", whole, n, axis=axis, largest=int(c.attrs["descending"]), sorted=1, result=1)
