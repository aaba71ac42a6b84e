"""Powers whose exponents are elements of a tensor."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

import numpy as np

from ...record.pointwise_op import SPECIAL, pointwise_op
from ...record.samples import Make, Sample
from ...record.types import F, Operand, S
from ...var.var import Var
from .arithmetic import mul
from .exponential import log
from .functions import shift
from .integer import logical_and
from .kernels import pow as kernels
from .select import equal, greater_equal, keep

BASES = (*SPECIAL, 1.0, -1.0, -2.0, 0.5, -0.5)
EXPONENTS = (0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, -1.5, np.inf, -np.inf, np.nan, 8388609.0, 1e30)
"""Whole and broken ones, odd and even ones, those of which no float is odd."""


ZERO: Any = 0.0
"""A number beside a tensor, which stands for as many."""


def _powers(make: Make) -> list[Sample]:
    bases, exponents = (np.array(row).astype(make.dtype) for row in (BASES, EXPONENTS))
    pairs = np.repeat(bases, exponents.size), np.tile(exponents, bases.size)
    drawn = [Sample((make.positive(*shape), make(*shape))) for shape in ((), (0,), (3, 37))]
    return [*drawn, Sample((make.positive(4, 3).T, make(3, 4))), Sample(pairs)]


def _by_base(d: Any, x: Any, exponent: Any) -> Any:
    slope = mul(exponent, pow(x, shift(exponent, -1.0)))
    return keep(mul(d, slope), equal(exponent, ZERO), wanted=False)


def _by_exponent(d: Any, x: Any, exponent: Any, y: Any) -> Any:
    constant = logical_and(equal(x, ZERO), greater_equal(exponent, ZERO))
    return keep(mul(d, mul(y, log(x))), constant, wanted=False)


@pointwise_op(kernels.pow_of_elements, _by_base, _by_exponent, samples=_powers, work=70)
def pow(x: Operand[F, *S], exponent: Operand[F, *S]) -> Var[F, *S]:
    """``x ** exponent`` by IEEE-754's pow; operands of one shape, ``**`` on Vars broadcasts.

    1 for an exponent of 0 and a base of 1, whatever the other is; NaN for a negative base and an exponent that is not
    whole. The gradient by the base is 0 where the exponent is 0, that by the exponent where the base is 0 and the
    exponent at least 0; by the exponent it is NaN for negative bases. For an exponent that is a number see `power`.

    Source: pow of IEEE 754-2019; gradients as torch.pow.

    >>> from dgrr.tape import Tape, ops
    >>> ops.pow(Tape().leaf([2.0, 4.0, -2.0]), [-1.0, 0.5, 3.0]).numpy()
    array([ 0.5,  2. , -8. ])
    """
    ...
