"""NAdam: Adam with the momentum of Nesterov."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ....tape import AnyVar, ops
from ....tape.values.spec import Spec
from ..rates.schedules import Schedule
from ..rules.tape_rule import TapeRule, correction, like, mixed, shrunk, slope


@dataclass(frozen=True)
class NAdam(TapeRule, rule="nadam@1", buffers=("m", "v", "product")):
    """Adam that looks ahead along its momentum.

    One step on a parameter ``p`` with gradient ``g``; ``m``, ``v`` and ``product``, one number, are its buffers, ``t``
    the step, from 1::

        g = g + weight_decay * p                                        # p = (1 - lr * weight_decay) * p if decoupled
        mu(t) = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))
        product = product * mu(t)                                       # from 1 on at step 1
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        root = sqrt(v / (1 - beta2 ** t)) + eps
        p = p - lr * (1 - mu(t)) / (1 - product) * g / root
              - lr * mu(t + 1) / (1 - product * mu(t + 1)) * m / root

    A parameter whose first gradient comes after step 1 has the product 0.

    Source: Dozat (2016), Incorporating Nesterov Momentum into Adam; torch.optim.NAdam.
    Shapes: parameters of any shape; gradients, ``m`` and ``v`` have that of their parameter, ``product`` no axes.
    Dtypes: parameters float32 or float64; gradients, ``m`` and ``v`` as their parameter, ``product`` float64; the
        state's ``step`` int64.

    Args:
        eps: added to the denominator.
        weight_decay: factor of the L2 penalty.
        momentum_decay: how fast the momentum rises to ``beta1``.
        decoupled: whether weight decay leaves the gradient as it is (``decoupled_weight_decay`` in PyTorch).

    >>> from dgrr.runtime.optim import NAdam
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, NAdam(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0.4718, 1.5282])
    """

    lr: float | Schedule = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum_decay: float = 4e-3
    _: KW_ONLY
    decoupled: bool = False
    maximize: bool = False

    def kept(self, spec: Spec) -> list[Spec]:
        """The product is one number."""
        return [spec, spec, Spec((), np.dtype(np.float64))]

    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: AnyVar, step: AnyVar) -> Any:
        """The formula above."""
        beta1, beta2 = self.betas
        g = slope(p, g, maximize=self.maximize, weight_decay=0.0 if self.decoupled else self.weight_decay)
        p = shrunk(p, lr, self.weight_decay if self.decoupled else 0.0)
        begins = ops.cast(step < 1.5, "float64")
        now, after = self._momentum(step), self._momentum(step + 1.0)
        product = (begins + (1.0 - begins) * buffers[2]) * now
        m, v = mixed(buffers[0], g, beta1), mixed(buffers[1], g * g, beta2)
        root = ops.sqrt(v / like(p, correction(beta2, step))) + self.eps
        ahead = like(p, lr * (1.0 - now) / (1.0 - product)) * (g / root)
        return p - ahead - like(p, lr * after / (1.0 - product * after)) * (m / root), m, v, product

    def _momentum(self, step: AnyVar) -> AnyVar:
        base = ops.log(step.tape.const(np.array(0.96)))
        return self.betas[0] * (1.0 - 0.5 * ops.exp(step * self.momentum_decay * base))
