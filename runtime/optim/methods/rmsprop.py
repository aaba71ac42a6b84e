"""RMSprop: steps divided by the root of a running mean of squared gradients."""

from dataclasses import KW_ONLY, dataclass

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.operations import Number, constant
from ..kinds import SHARE
from ..laws.formulas import mixed, root, slope
from ..laws.pointwise import PointLaw, law
from ..rates.schedules import Schedule
from ..rules.point_rule import PointRule

Numbers = tuple[Number, ...]


@formula
def divided(g: Number, variance: Number, eps: float) -> Number:
    """A gradient over the root of its variance."""
    return g / (root(variance) + constant(g, eps))


@law("rmsprop@1", "square")
def rmsprop(
    p: Number, g: Number, square: Number,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of RMSprop."""
    g = slope(p, g, maximize, weight_decay)
    square = mixed(square, g * g, alpha)
    return p - constant(p, lr) * divided(g, square, eps), square


@law("rmsprop@1", "square", "momentum")
def rmsprop_momentum(
    p: Number, g: Number, square: Number, b: Number,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of RMSprop with momentum."""
    g = slope(p, g, maximize, weight_decay)
    square = mixed(square, g * g, alpha)
    b = constant(p, momentum) * b + divided(g, square, eps)
    return p - constant(p, lr) * b, square, b


@law("rmsprop@1", "square", "mean")
def rmsprop_centered(
    p: Number, g: Number, square: Number, mean: Number,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of RMSprop around the mean."""
    g = slope(p, g, maximize, weight_decay)
    square, mean = mixed(square, g * g, alpha), mixed(mean, g, alpha)
    return p - constant(p, lr) * divided(g, square - mean * mean, eps), square, mean


@law("rmsprop@1", "square", "mean", "momentum")
def rmsprop_centered_momentum(
    p: Number, g: Number, square: Number, mean: Number, b: Number,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of RMSprop around the mean, with momentum."""
    g = slope(p, g, maximize, weight_decay)
    square, mean = mixed(square, g * g, alpha), mixed(mean, g, alpha)
    b = constant(p, momentum) * b + divided(g, square - mean * mean, eps)
    return p - constant(p, lr) * b, square, mean, b


@dataclass(frozen=True)
class RMSprop(
    PointRule, law=(rmsprop, rmsprop_momentum, rmsprop_centered, rmsprop_centered_momentum), kinds={"alpha": SHARE}
):
    """Steps divided by the root of a running mean of squared gradients.

    One step on a parameter ``p`` with gradient ``g``; ``square``, ``mean`` and ``momentum`` are its buffers::

        g = g + weight_decay * p
        square = alpha * square + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g                           # if centered
        root = sqrt(square - mean * mean) + eps if centered else sqrt(square) + eps
        b = momentum * b + g / root                                     # if momentum is not 0
        p = p - lr * b                                                  # g / root in place of b without

    Source: Tieleman and Hinton (2012), lecture 6.5; Graves (2013), arXiv:1308.0850, centered; torch.optim.RMSprop.

    Args:
        alpha: decay of the running means.
        eps: added to the denominator.
        weight_decay: factor of the L2 penalty.
        momentum: weight of the old buffer.
        centered: whether to subtract the square of the running mean of gradients.

    >>> from dgrr.runtime.optim import RMSprop
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, RMSprop(lr=0.5, alpha=0.75)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0., 2.])
    """

    lr: float | Schedule = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    _: KW_ONLY
    centered: bool = False
    maximize: bool = False

    @property
    def chosen(self) -> PointLaw:
        """The law with the buffers that the flags ask for."""
        return self.laws[2 * self.centered + (self.momentum != 0)]
