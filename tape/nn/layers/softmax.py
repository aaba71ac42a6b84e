"""Softmax and its logarithm as layers."""

from dataclasses import dataclass

from ... import ops
from ...var.var import AnyVar
from ..context import Context
from ..layer import Layer, Params


@dataclass(frozen=True)
class Softmax(Layer):
    """``exp(x) / sum(exp(x))`` along an axis, the last unless given.

    Source: Bridle (1990); torch.nn.Softmax.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        ShapeError: when called, x has no such axis.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Softmax()({}, Tape().leaf([0.0, 0.0, -np.inf])).numpy()
    array([0.5, 0.5, 0. ])
    """

    axis: int = -1

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.softmax(x, self.axis)


@dataclass(frozen=True)
class LogSoftmax(Layer):
    """The logarithm of `Softmax`, more exact than ``log`` of it.

    Source: torch.nn.LogSoftmax.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        ShapeError: when called, x has no such axis.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LogSoftmax()({}, Tape().leaf([0.0, 0.0])).numpy().round(4)
    array([-0.6931, -0.6931])
    """

    axis: int = -1

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.log_softmax(x, self.axis)
