"""The exponential function, its inverse, and what is made of it in one kernel: tanh and the logistic function."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from ...numerics.math import reference
from ...record.lowering import elementwise
from ...record.op import op
from ...record.samples import unary, unary_positive
from ...record.types import F, S
from ...var.var import Var
from .arithmetic import EACH, INTEGERS, SPECIAL, div, mul, sub
from .kernels import basic as kernels


@op(
    lower=lambda x: elementwise(kernels.exp, x, work=20),
    vjp=(lambda g, y: mul(g, y),),
    jvp=lambda dx, y: mul(dx, y),
    reference=reference.exp,
    samples=unary(SPECIAL),
    errors=(INTEGERS,),
    covers=("exp",),
    batch_axis=EACH,
)
def exp(x: Var[F, *S]) -> Var[F, *S]:
    """``e ** x``.

    Source: numpy.exp.

    >>> from dgrr.tape import Tape, ops
    >>> ops.exp(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([1.    , 2.7183])
    """
    ...


@op(
    lower=lambda x: elementwise(kernels.log, x, work=20),
    vjp=(lambda g, x: div(g, x),),
    jvp=lambda dx, x: div(dx, x),
    reference=reference.log,
    samples=unary_positive(SPECIAL),
    errors=(INTEGERS,),
    covers=("log",),
    batch_axis=EACH,
)
def log(x: Var[F, *S]) -> Var[F, *S]:
    """The natural logarithm: -inf at 0, NaN below.

    Source: numpy.log.

    >>> from dgrr.tape import Tape, ops
    >>> ops.log(Tape().leaf([1.0, 0.0])).numpy()
    array([  0., -inf])
    """
    ...


@op(
    lower=lambda x: elementwise(kernels.tanh, x, work=30),
    vjp=(lambda g, y: sub(g, mul(g, mul(y, y))),),
    jvp=lambda dx, y: sub(dx, mul(dx, mul(y, y))),
    reference=reference.tanh,
    samples=unary(SPECIAL),
    errors=(INTEGERS,),
    covers=("tanh",),
    batch_axis=EACH,
)
def tanh(x: Var[F, *S]) -> Var[F, *S]:
    """The hyperbolic tangent.

    Source: numpy.tanh.

    >>> from dgrr.tape import Tape, ops
    >>> ops.tanh(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7616])
    """
    ...


@op(
    lower=lambda x: elementwise(kernels.sigmoid, x, work=30),
    vjp=(lambda g, y: mul(g, sub(y, mul(y, y))),),
    jvp=lambda dx, y: mul(dx, sub(y, mul(y, y))),
    reference=reference.sigmoid,
    samples=unary(SPECIAL),
    errors=(INTEGERS,),
    covers=("sigmoid",),
    batch_axis=EACH,
)
def sigmoid(x: Var[F, *S]) -> Var[F, *S]:
    """``1 / (1 + e ** -x)``, without overflow on either side.

    Source: the logistic function, as torch.sigmoid.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sigmoid(Tape().leaf([0.0, 1000.0])).numpy()
    array([0.5, 1. ])
    """
    ...
