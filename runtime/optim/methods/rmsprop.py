"""RMSprop: steps divided by the root of a running mean of squared gradients."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from ....tape import AnyVar, ops
from ..rates.schedules import Schedule
from .tape_rule import TapeRule, like, mixed, slope


@dataclass(frozen=True)
class RMSprop(TapeRule):
    """Steps divided by the root of a running mean of squared gradients.

    One step on a parameter ``p`` with gradient ``g``; ``square``, ``mean`` and ``momentum`` are its buffers::

        g = g + weight_decay * p
        square = alpha * square + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g                           # if centered
        root = sqrt(square - mean * mean) + eps if centered else sqrt(square) + eps
        b = momentum * b + g / root                                     # if momentum is not 0
        p = p - lr * b                                                  # g / root in place of b without

    Source: Tieleman and Hinton (2012), lecture 6.5; Graves (2013), arXiv:1308.0850, centered; torch.optim.RMSprop.
    Shapes: parameters of any shape; gradients and buffers have that of their parameter.
    Dtypes: parameters float32 or float64; gradients and buffers as their parameter; the state's ``step`` int64.

    Args:
        lr: step size, at least 0, or a schedule of step sizes.
        alpha: decay of the running means, in [0, 1).
        eps: added to the denominator, at least 0.
        weight_decay: factor of the L2 penalty, at least 0.
        momentum: weight of the old buffer, at least 0.
        centered: whether to subtract the square of the running mean of gradients.
        maximize: whether to climb, by the negated gradient.

    Raises:
        DomainError: a hyperparameter outside these bounds.

    >>> from dgrr.runtime.optim import RMSprop
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, RMSprop(lr=0.5, alpha=0.75)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0., 2.])
    """

    rule: ClassVar[str] = "rmsprop@1"
    names: ClassVar[tuple[str, ...]] = ("lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize")
    flags: ClassVar[tuple[str, ...]] = ("centered", "maximize")
    shares: ClassVar[tuple[str, ...]] = ("alpha",)

    lr: float | Schedule = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    _: KW_ONLY
    centered: bool = False
    maximize: bool = False

    @property
    def buffers(self) -> tuple[str, ...]:
        """What the flags ask for."""
        return ("square", *["mean"] * self.centered, *["momentum"] * (self.momentum != 0))

    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: AnyVar, step: AnyVar) -> Any:
        """The formula above."""
        kept = dict(zip(self.buffers, buffers, strict=True))
        g = slope(p, g, maximize=self.maximize, weight_decay=self.weight_decay)
        kept["square"] = variance = mixed(kept["square"], g * g, self.alpha)
        if self.centered:
            kept["mean"] = mixed(kept["mean"], g, self.alpha)
            variance = variance - kept["mean"] * kept["mean"]
        change = g / (ops.sqrt(variance) + self.eps)
        if self.momentum:
            kept["momentum"] = change = self.momentum * kept["momentum"] + change
        return p - like(p, lr) * change, *kept.values()
