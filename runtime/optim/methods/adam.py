"""Adam and AdamW, with the names, defaults and formulas of torch.optim.

Each rule is one expression tree of correctly rounded operations. Constants are computed in float64 and
rounded once to the parameter's dtype; everything else is computed in that dtype, operation by operation and
without fused multiply-add, so the elementwise operations of numpy give the same bits.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.minmax import larger
from ....tape.numerics.simd.operations import Number, constant, select, sqrt
from ..laws.formulas import correction, mixed, root, shrunk, slope
from ..laws.pointwise import PointLaw, law
from ..rates.schedules import Schedule
from ..rules.point_rule import PointRule

Numbers = tuple[Number, ...]


# ------------------------------------------------------------------ Adam, as torch.optim computes it


@law("adam@1", "m", "v")
def adam(
    p: Number, g: Number, m: Number, v: Number, c1: float, c2: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> Numbers:  # fmt: skip
    """One step of Adam."""
    g = slope(p, g, 0.0, weight_decay)
    m, v = interpolated(m, g, beta1), constant(v, beta2) * v + (constant(v, 1.0 - beta2) * g) * g
    return p - adapted(m, v, c1, c2, lr, eps), m, v


@law("adamw@1", "m", "v")
def adamw(
    p: Number, g: Number, m: Number, v: Number, c1: float, c2: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> Numbers:  # fmt: skip
    """One step of AdamW."""
    m, v = interpolated(m, g, beta1), constant(v, beta2) * v + (constant(v, 1.0 - beta2) * g) * g
    return shrunk(p, lr, weight_decay) - adapted(m, v, c1, c2, lr, eps), m, v


@formula
def interpolated(m: Number, g: Number, beta1: float) -> Number:
    """A running average after a new value, from the nearer of the two, as torch.lerp."""
    change = g - m
    return select(1.0 - beta1 < 0.5, m + constant(m, 1.0 - beta1) * change, g - constant(m, beta1) * change)


@formula
def adapted(m: Number, v: Number, c1: float, c2: Any, lr: float, eps: float) -> Number:
    """A step along the first moment over the root of the second."""
    spread: Any = sqrt(c2)
    return constant(m, lr / c1) * m / (sqrt(v) / constant(m, spread) + constant(m, eps))


# ------------------------------------------------------------------ its second version, whose averages are `mixed`


@formula
def moved(p: Number, m: Number, v: Number, step: float, lr: float, beta1: float, beta2: float, eps: float) -> Number:
    """The parameter after a step along the first moment over the root of the second."""
    c1, c2 = correction(beta1, step), correction(beta2, step)
    spread: Any = root(c2)
    return p - constant(p, lr / c1) * m / (root(v) / constant(p, spread) + constant(p, eps))


@law("adam@2", "m", "v")
def adam_uphill(
    p: Number, g: Number, m: Number, v: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of Adam, of the negated gradient."""
    g = slope(p, g, maximize, weight_decay)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    return moved(p, m, v, step, lr, beta1, beta2, eps), m, v


@law("adam@2", "m", "v", "largest")
def adam_amsgrad(
    p: Number, g: Number, m: Number, v: Number, largest: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of Adam, divided by the largest second moment so far."""
    g = slope(p, g, maximize, weight_decay)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    largest = larger(largest, v)
    return moved(p, m, largest, step, lr, beta1, beta2, eps), m, v, largest


@law("adamw@2", "m", "v")
def adamw_uphill(
    p: Number, g: Number, m: Number, v: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of AdamW, of the negated gradient."""
    g = slope(p, g, maximize, 0.0)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    return moved(shrunk(p, lr, weight_decay), m, v, step, lr, beta1, beta2, eps), m, v


@law("adamw@2", "m", "v", "largest")
def adamw_amsgrad(
    p: Number, g: Number, m: Number, v: Number, largest: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of AdamW, divided by the largest second moment so far."""
    g = slope(p, g, maximize, 0.0)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    largest = larger(largest, v)
    return moved(shrunk(p, lr, weight_decay), m, largest, step, lr, beta1, beta2, eps), m, v, largest


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
        eps: added to the denominator.
        weight_decay: factor of the L2 penalty.
        amsgrad: whether to divide by the largest ``v`` so far, which is then a third buffer.
        maximize: whether to climb, by the negated gradient. With either, traces record ``adam@2``.

    >>> from dgrr.runtime.optim import Adam, Cosine
    >>> Adam(1e-3).hyperparameters()
    {'lr': 0.001, 'beta1': 0.9, 'beta2': 0.999, 'eps': 1e-08, 'weight_decay': 0.0}
    >>> Adam(lr=Cosine(1e-3, steps=1000)).hyperparameters(step=501)["lr"]
    0.0005
    """

    later: ClassVar[tuple[str, ...]] = ("amsgrad", "maximize")

    lr: float | Schedule = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    _: KW_ONLY
    amsgrad: bool = False
    maximize: bool = False

    @property
    def chosen(self) -> PointLaw:
        """The law, in the version that knows the flags if one is set."""
        return self.laws[2 if self.amsgrad else self.maximize]


@dataclass(frozen=True, repr=False)
class AdamW(Adam, law=(adamw, adamw_uphill, adamw_amsgrad)):
    """Adam with decoupled weight decay; ``amsgrad`` and ``maximize`` as in `Adam`, recorded as ``adamw@2``.

    As `Adam`, but the gradient is left as it is and the parameter shrinks::

        p = (1 - lr * weight_decay) * p - ((lr / c1) * m) / (sqrt(v) / sqrt(c2) + eps)

    Source: Loshchilov and Hutter (2019), arXiv:1711.05101; torch.optim.AdamW.

    Args:
        weight_decay: how much of ``lr * p`` is taken away.

    >>> from dgrr.runtime import AdamW
    >>> params, rule = {"w": np.ones(1)}, AdamW(lr=0.5, weight_decay=0.5)
    >>> rule.step(params, {"w": np.zeros(1)}, rule.init(params))
    >>> params["w"]
    array([0.75])
    """

    weight_decay: float = 1e-2
