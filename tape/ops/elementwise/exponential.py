"""The exponential function, its inverse, and what is made of it in one kernel: tanh and the logistic function."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from ...record.pointwise_op import pointwise_op
from ...record.types import F, S
from ...var.var import Var
from .arithmetic import div, mul, sub
from .kernels import basic as kernels


@pointwise_op(kernels.exp, lambda d, y: mul(d, y), work=20, covers=("exp",))
def exp(x: Var[F, *S]) -> Var[F, *S]:
    """``e ** x``.

    Source: numpy.exp.

    >>> from dgrr.tape import Tape, ops
    >>> ops.exp(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([1.    , 2.7183])
    """
    ...


@pointwise_op(kernels.log, lambda d, x: div(d, x), positive=True, work=20, covers=("log",))
def log(x: Var[F, *S]) -> Var[F, *S]:
    """The natural logarithm: -inf at 0, NaN below.

    Source: numpy.log.

    >>> from dgrr.tape import Tape, ops
    >>> ops.log(Tape().leaf([1.0, 0.0])).numpy()
    array([  0., -inf])
    """
    ...


@pointwise_op(kernels.tanh, lambda d, y: sub(d, mul(d, mul(y, y))), work=30, covers=("tanh",))
def tanh(x: Var[F, *S]) -> Var[F, *S]:
    """The hyperbolic tangent.

    Source: numpy.tanh.

    >>> from dgrr.tape import Tape, ops
    >>> ops.tanh(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7616])
    """
    ...


@pointwise_op(kernels.sigmoid, lambda d, y: mul(d, sub(y, mul(y, y))), work=30, covers=("sigmoid",))
def sigmoid(x: Var[F, *S]) -> Var[F, *S]:
    """``1 / (1 + e ** -x)``, without overflow on either side.

    Source: the logistic function, as torch.sigmoid.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sigmoid(Tape().leaf([0.0, 1000.0])).numpy()
    array([0.5, 1. ])
    """
    ...
