"""LAMB: steps of Adam whose length follows that of the parameter."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ....tape import AnyVar, ops
from ..rates.schedules import Schedule
from ..rules.tape_rule import TapeRule, correction, like, mixed, norm, slope


@dataclass(frozen=True)
class LAMB(TapeRule, rule="lamb@1", buffers=("m", "v")):
    """Steps of Adam scaled to the norm of each parameter, for large batches.

    One step on a parameter ``p`` with gradient ``g``; ``m`` and ``v`` are its buffers, ``t`` the step, from 1::

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        r = (m / (1 - beta1 ** t)) / (sqrt(v / (1 - beta2 ** t)) + eps) + weight_decay * p
        trust = |p| / |r|                                               # 1 where one of the norms is 0
        p = p - lr * trust * r

    Norms are Euclidean, of the whole parameter.

    Source: You and others (2020), arXiv:1904.00962, algorithm 2, with the identity for phi; optax.lamb.

    Args:
        eps: added to the denominator.
        weight_decay: factor of the parameter in the step.

    >>> from dgrr.runtime.optim import LAMB
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, LAMB(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0.5, 1.5])
    """

    lr: float | Schedule = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    weight_decay: float = 0.0
    _: KW_ONLY
    maximize: bool = False

    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: AnyVar, step: AnyVar) -> Any:
        """The formula above."""
        beta1, beta2 = self.betas
        g = slope(p, g, maximize=self.maximize)
        m, v = mixed(buffers[0], g, beta1), mixed(buffers[1], g * g, beta2)
        root = ops.sqrt(v / like(p, correction(beta2, step))) + self.eps
        r = m / like(p, correction(beta1, step)) / root
        r = r + self.weight_decay * p if self.weight_decay else r
        return p - like(p, lr) * _trust(norm(p), norm(r)) * r, m, v


def _trust(p: AnyVar, r: AnyVar) -> AnyVar:
    """Of two norms ``p / r``, or 1 where one of them is 0."""
    both = ops.cast(p > 0.0, p.dtype) * ops.cast(r > 0.0, p.dtype)
    return both * (p / (r + (1.0 - both))) + (1.0 - both)
