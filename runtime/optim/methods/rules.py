"""Stochastic gradient descent, Adam and AdamW, with the names, defaults and formulas of torch.optim.

Each rule is one expression tree of correctly rounded operations. Constants are computed in float64 and
rounded once to the parameter's dtype; everything else is computed in that dtype, operation by operation and
without fused multiply-add, so the elementwise operations of numpy give the same bits.
"""

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, cast

from ....tape.record.kinds.values import Beside
from ..kinds import FRACTION
from ..laws.adam import adam, adam_amsgrad, adam_uphill, adamw, adamw_amsgrad, adamw_uphill
from ..laws.sgd import sgd, sgd_momentum, sgd_momentum_uphill, sgd_uphill
from ..point_rule import PointRule
from ..pointwise import PointLaw
from ..rates.schedules import Schedule
from ..rule import Rule

WITH_MOMENTUM = Beside(
    "False where momentum is 0 or dampening is not",
    lambda given: not given["nesterov"] or (given["momentum"] != 0 and given["dampening"] == 0),
    lambda given: [True] if given["momentum"] == 0 or given["dampening"] != 0 else [],
    shown=True,
)


@dataclass(frozen=True, repr=False)
class SGD(
    PointRule,
    law=(sgd, sgd_momentum, sgd_uphill, sgd_momentum_uphill),
    kinds={"dampening": FRACTION, "nesterov": WITH_MOMENTUM},
):
    """Stochastic gradient descent with momentum, Nesterov's variant and an L2 penalty.

    One step on a parameter ``p`` with gradient ``g``; ``b`` is its momentum buffer, ``t`` the step, from 1::

        g = g + weight_decay * p                                       # if weight_decay is not 0
        b = g if t == 1 else momentum * b + (1 - dampening) * g        # if momentum is not 0
        g = g + momentum * b if nesterov else b                        # if momentum is not 0
        p = p - lr * g

    A parameter whose first gradient comes after step 1 starts from a buffer of zeros.

    Source: torch.optim.SGD; Sutskever, Martens, Dahl and Hinton (2013) for Nesterov's variant.

    Args:
        lr: step size, at least 0, or a schedule of step sizes.
        momentum: weight of the old buffer, at least 0.
        dampening: share of a new gradient that is left out of the buffer, in [0, 1].
        nesterov: look ahead along the buffer; needs momentum and no dampening.
        weight_decay: factor of the L2 penalty, at least 0.
        maximize: whether to climb, by the negated gradient; traces record it as ``sgd@2``.

    >>> from dgrr.runtime import SGD
    >>> params, rule = {"w": np.ones(2)}, SGD(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -1.0])}, rule.init(params))
    >>> params["w"]
    array([0.5, 1.5])
    """

    lr: float | Schedule
    momentum: float = 0.0
    dampening: float = 0.0
    _: KW_ONLY
    nesterov: bool = False
    weight_decay: float = 0.0
    maximize: bool = False

    def __repr__(self) -> str:
        return _text(self, "maximize")

    @property
    def chosen(self) -> PointLaw:
        """The law with the buffer that momentum needs, in the version that knows ``maximize`` if that is set."""
        return self.laws[2 * self.maximize + (self.momentum != 0)]


@dataclass(frozen=True, repr=False)
class Adam(PointRule, law=(adam, adam_uphill, adam_amsgrad)):
    """Adam, with an L2 penalty in the gradient.

    One step on a parameter ``p`` with gradient ``g``; ``m`` and ``v`` are its buffers::

        g = g + weight_decay * p                                       # if weight_decay is not 0
        m = m + (1 - beta1) * (g - m)        if 1 - beta1 < 0.5
            g - beta1 * (g - m)              otherwise                 # torch.lerp
        v = beta2 * v + ((1 - beta2) * g) * g
        p = p - ((lr / c1) * m) / (sqrt(v) / sqrt(c2) + eps)

    ``(c1, c2) = (1 - beta1 ** t, 1 - beta2 ** t)`` at step ``t``, from 1, is the state array ``corrections``:
    float64, the powers by binary powering. ``1 - beta1``, ``1 - beta2``, ``lr / c1`` and ``sqrt(c2)`` are
    constants of the step: computed in float64, rounded once.

    Source: Kingma and Ba (2015), arXiv:1412.6980; torch.optim.Adam.

    Args:
        lr: step size, at least 0, or a schedule of step sizes.
        betas: decay of the two running averages, each in [0, 1).
        eps: added to the denominator, at least 0.
        weight_decay: factor of the L2 penalty, at least 0.
        amsgrad: whether to divide by the largest ``v`` so far, which is then a third buffer.
        maximize: whether to climb, by the negated gradient. With either, traces record ``adam@2``.

    >>> from dgrr.runtime.optim import Adam, Cosine
    >>> Adam(1e-3).hyperparameters()
    {'lr': 0.001, 'beta1': 0.9, 'beta2': 0.999, 'eps': 1e-08, 'weight_decay': 0.0}
    >>> Adam(lr=Cosine(1e-3, steps=1000)).hyperparameters(step=501)["lr"]
    0.0005
    """

    lr: float | Schedule = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    _: KW_ONLY
    amsgrad: bool = False
    maximize: bool = False

    def __repr__(self) -> str:
        return _text(self, "amsgrad", "maximize")

    @property
    def chosen(self) -> PointLaw:
        """The law, in the version that knows the flags if one is set."""
        return self.laws[2 if self.amsgrad else self.maximize]


@dataclass(frozen=True, repr=False)
class AdamW(Adam, law=(adamw, adamw_uphill, adamw_amsgrad)):
    """Adam with decoupled weight decay; ``amsgrad`` and ``maximize`` as there, recorded as ``adamw@2``.

    As `Adam`, but the gradient is left as it is and the parameter shrinks::

        p = (1 - lr * weight_decay) * p - ((lr / c1) * m) / (sqrt(v) / sqrt(c2) + eps)

    Source: Loshchilov and Hutter (2019), arXiv:1711.05101; torch.optim.AdamW.

    >>> from dgrr.runtime import AdamW
    >>> params, rule = {"w": np.ones(1)}, AdamW(lr=0.5, weight_decay=0.5)
    >>> rule.step(params, {"w": np.zeros(1)}, rule.init(params))
    >>> params["w"]
    array([0.75])
    """

    weight_decay: float = 1e-2


FUSED: dict[str, type[Rule]] = {cls.rule: cls for cls in (SGD, Adam, AdamW)}
"""The rules that are one kernel, by name, which those of other frameworks are held against."""


def _text(rule: Rule, *flags: str) -> str:
    """The rule as a call, flags where they are set alone: older checkpoints, which know it by its text, have none."""
    shown = [field.name for field in fields(cast(Any, rule)) if field.name not in flags or getattr(rule, field.name)]
    return f"{type(rule).__name__}({', '.join(f'{name}={getattr(rule, name)!r}' for name in shown)})"
