"""Softmax and its logarithm as layers."""

from dataclasses import dataclass

from .. import ops
from ..context import Context
from ..var import AnyVar
from .layer import Layer, Params


@dataclass(frozen=True)
class Softmax(Layer):
    """``exp(x) / sum(exp(x))`` along an axis, the last unless given."""

    axis: int = -1

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.softmax(x, self.axis)


@dataclass(frozen=True)
class LogSoftmax(Layer):
    """The logarithm of `Softmax`, more exact than ``log`` of it."""

    axis: int = -1

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.log_softmax(x, self.axis)
