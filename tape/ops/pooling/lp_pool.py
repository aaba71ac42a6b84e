"""Pools by the p-norm of each window, made of other ops."""

from dataclasses import replace
from math import inf, nan, prod
from typing import Any

from ....base.arrays import Array
from ...numerics.math.exact import quotient
from ...record.composed import composed, fitted
from ...record.kinds.values import Values
from ...record.op import OPS
from ...record.samples import Make, Sample
from ...record.types import F
from ...values.spec import Spec
from ...var.var import Gradual
from ..elementwise.arithmetic import power, scale
from .avg_pool import avg_pool
from .rules import KERNEL, pooled, sliding_rules
from .samples import x_errors

MOST = 1 << 20
"""The largest whole exponent that `power` takes."""


def _reference(x: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    powers = OPS["power"].reference(x, norm_type)
    means = OPS["avg_pool"].reference(powers, kernel_size, stride, ceil_mode=ceil_mode)
    norms: Array = OPS["power"].reference(means * x.dtype.type(prod(kernel_size)), quotient(1, norm_type))
    return norms


EXPONENT = Values("a number above 0 and at most 2**20", lambda p: 0 < p <= MOST, (0, -1.0, MOST + 1, inf, nan))
WINDOWS = x_errors("lp_pool", "kernel_size")
"""What it refuses of its windows."""


def _samples(make: Make) -> list[Sample]:
    return [
        Sample((make.positive(2, 7),), {"norm_type": 3, "kernel_size": (2,)}),
        Sample((make(2, 5, 6),), {"norm_type": 2, "kernel_size": (3, 2), "stride": (1, 2)}),
        Sample((make.positive(1, 6),), {"norm_type": 1.5, "kernel_size": (3,), "stride": 2, "ceil_mode": True}),
    ]


@composed(
    reference=_reference,
    samples=_samples,
    errors=(
        *[replace(given, attrs={**given.attrs, "norm_type": 2}) for given in WINDOWS],
    ),
    batch_axis={"x": 0},
    kinds={"norm_type": EXPONENT, **KERNEL},
)  # fmt: skip
def lp_pool(
    x: Gradual[F],
    norm_type: float,
    kernel_size: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    ceil_mode: bool = False,
) -> Gradual[F]:
    """``sum(x ** p) ** (1 / p)`` of windows that slide along the last axes; p is ``norm_type``.

    The sum is the mean of `avg_pool` times the cells of the kernel, also for a window that hangs over the end, as in
    PyTorch. A window whose sum is 0 has an infinite gradient or none, and one whose sum is negative gives NaN.

    Source: torch.nn.functional.lp_pool1d, lp_pool2d and lp_pool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); sizes as in `max_pool`

    >>> from dgrr.tape import Tape, ops
    >>> ops.lp_pool(Tape().leaf([3.0, 4.0, 0.0, 2.0]), 2, (2,)).numpy()
    array([5., 2.])
    """
    (x,) = fitted("lp_pool", x)
    given: Any = x
    spec = Spec(tuple(given.shape), given.dtype)
    pooled("lp_pool", spec, sliding_rules("lp_pool", kernel_size, stride, ceil_mode=ceil_mode))
    means: Any = avg_pool(power(given, norm_type), kernel_size, stride, 0, True, ceil_mode)
    return power(scale(means, float(prod(kernel_size))), quotient(1, norm_type))
