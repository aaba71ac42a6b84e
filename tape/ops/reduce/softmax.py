"""Softmax and its logarithm along an axis."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from typing import Any

import numpy as np

from ...numerics.engine.kernel import Kernel
from ...numerics.math.reference import sums as reference_sums
from ...record.kinds.values import AXIS
from ...record.lowering import Slot, call, permuted
from ...record.op_decorator import op
from ...record.samples import Make, Sample
from ...record.types import F, S
from ...values.shape import normal_axis
from ...var.var import Var
from ..elementwise.arithmetic import mul, sub
from ..elementwise.exponential import exp
from .kernels import softmax as kernels
from .reduce import broadcast_to, reduce_sum

WORK = 50
"""Arithmetic operations per element, for the choice of threads."""


def _along(name: str, kernel: Kernel, x: Slot, axis: int) -> Slot:
    """A row kernel along any axis: the axis is brought to the end and back."""
    last = normal_axis(name, axis, x.spec.rank)
    forth = (*(a for a in range(x.spec.rank) if a != last), last)
    back = tuple(int(i) for i in np.argsort(forth))
    moved = x if last == x.spec.rank - 1 else permuted(x, forth)
    n = x.shape[last]
    rows = x.spec.size // n if n else 0
    out = call(kernel, [moved], moved.shape, rows, n, work=WORK * x.spec.size, aliases=(0,))
    return out if moved is x else permuted(out, back)


def _sum_along(x: Any, axis: int) -> Any:
    return broadcast_to(reduce_sum(x, axis, keepdims=True), tuple(x.shape))


def _rows(make: Make) -> list[Sample]:
    large = make(3, 5) * make.dtype.type(400)
    hole = make(2, 4)
    hole[0, 1] = -np.inf
    plain = [Sample((x,)) for x in (make(4, 10), make(7), make(2, 3, 40), make(0, 3), make(3, 0), large, hole)]
    return [*plain, Sample((make(4, 3, 2),), {"axis": 0}), Sample((make(4, 3, 2),), {"axis": -2})]


@op(
    lower=partial(_along, "softmax", kernels.softmax),
    vjp=(lambda g, y, axis: mul(y, sub(g, _sum_along(mul(g, y), axis))),),
    jvp=lambda dx, y, axis: sub(mul(y, dx), mul(y, _sum_along(mul(y, dx), axis))),
    reference=reference_sums.softmax,
    samples=_rows,
    kinds={"axis": AXIS},
    covers=("softmax",),
    batch_axis={"x": 0},
)
def softmax(x: Var[F, *S], axis: int = -1) -> Var[F, *S]:
    """``exp(x - max) / sum(exp(x - max))`` along an axis.

    Source: Bridle (1990); torch.nn.functional.softmax.

    >>> from dgrr.tape import Tape, ops
    >>> ops.softmax(Tape().leaf([0.0, 0.0, -np.inf])).numpy()
    array([0.5, 0.5, 0. ])
    """
    ...


@op(
    lower=partial(_along, "log_softmax", kernels.log_softmax),
    vjp=(lambda g, y, axis: sub(g, mul(exp(y), _sum_along(g, axis))),),
    jvp=lambda dx, y, axis: sub(dx, _sum_along(mul(exp(y), dx), axis)),
    reference=reference_sums.log_softmax,
    samples=_rows,
    kinds={"axis": AXIS},
    covers=("log_softmax",),
    batch_axis={"x": 0},
)
def log_softmax(x: Var[F, *S], axis: int = -1) -> Var[F, *S]:
    """``(x - max) - log(sum(exp(x - max)))`` along an axis.

    Source: torch.nn.functional.log_softmax.

    >>> from dgrr.tape import Tape, ops
    >>> ops.log_softmax(Tape().leaf([0.0, 0.0])).numpy().round(4)
    array([-0.6931, -0.6931])
    """
    ...
