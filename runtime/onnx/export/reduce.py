"""Ops that make one element of many, and softmax."""

from functools import partial
from math import prod

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
