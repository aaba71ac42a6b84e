"""RMSprop: steps divided by the root of a running mean of squared gradients."""

from dataclasses import KW_ONLY, dataclass

from ..kinds import SHARE
from ..laws.rmsprop import rmsprop, rmsprop_centered, rmsprop_centered_momentum, rmsprop_momentum
from ..point_rule import PointRule
from ..pointwise import PointLaw
from ..rates.schedules import Schedule


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
        lr: step size, at least 0, or a schedule of step sizes.
        alpha: decay of the running means, in [0, 1).
        eps: added to the denominator, at least 0.
        weight_decay: factor of the L2 penalty, at least 0.
        momentum: weight of the old buffer, at least 0.
        centered: whether to subtract the square of the running mean of gradients.
        maximize: whether to climb, by the negated gradient.

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
