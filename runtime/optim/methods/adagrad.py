"""Adagrad: steps divided by the root of the sum of squared gradients."""

from dataclasses import KW_ONLY, dataclass

from ....tape.numerics.simd.operations import Number, constant, select
from ..laws.formulas import root, slope
from ..laws.pointwise import law
from ..rates.schedules import Schedule
from ..rules.point_rule import PointRule


@law("adagrad@1", "total")
def adagrad(
    p: Number, g: Number, total: Number, step: float,
    lr: float, lr_decay: float, weight_decay: float, initial: float, eps: float, maximize: float,
) -> tuple[Number, ...]:  # fmt: skip
    """One step of Adagrad."""
    g = slope(p, g, maximize, weight_decay)
    total = total + g * g
    size = lr / (1.0 + (step - 1.0) * lr_decay)
    inside = select(initial != 0.0, total + constant(p, initial), total)
    return p - constant(p, size) * (g / (root(inside) + constant(p, eps))), total


@dataclass(frozen=True)
class Adagrad(PointRule, law=adagrad):
    """Steps divided by the root of the sum of all squared gradients.

    One step on a parameter ``p`` with gradient ``g``; ``total`` is its buffer, ``t`` the step, from 1::

        g = g + weight_decay * p
        total = total + g * g
        p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(total + initial) + eps)

    PyTorch keeps the sum with ``initial`` in it.

    Source: Duchi, Hazan and Singer (2011); torch.optim.Adagrad.

    Args:
        lr_decay: how fast the rate shrinks.
        weight_decay: factor of the L2 penalty.
        initial: where the sum begins (``initial_accumulator_value`` in PyTorch).
        eps: added to the denominator.

    >>> from dgrr.runtime.optim import Adagrad
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, Adagrad(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0.5, 1.5])
    """

    lr: float | Schedule = 1e-2
    lr_decay: float = 0.0
    weight_decay: float = 0.0
    initial: float = 0.0
    eps: float = 1e-10
    _: KW_ONLY
    maximize: bool = False
