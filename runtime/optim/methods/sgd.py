"""Stochastic gradient descent, with the names, defaults and formulas of torch.optim."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.operations import Number, constant, select
from ....tape.record.kinds.values import Beside
from ..kinds import FRACTION
from ..laws.formulas import slope
from ..laws.pointwise import PointLaw, law
from ..rates.schedules import Schedule
from ..rules.point_rule import PointRule

Numbers = tuple[Number, ...]


@law("sgd@1")
def sgd(
    p: Number, g: Number,
    lr: float, momentum: float, dampening: float, nesterov: float, weight_decay: float,
) -> Numbers:  # fmt: skip
    """One step of SGD."""
    return (p - constant(p, lr) * slope(p, g, 0.0, weight_decay),)


@law("sgd@1", "momentum")
def sgd_momentum(
    p: Number, g: Number, b: Number, step: float,
    lr: float, momentum: float, dampening: float, nesterov: float, weight_decay: float,
) -> Numbers:  # fmt: skip
    """One step of SGD with momentum."""
    g = slope(p, g, 0.0, weight_decay)
    b = select(step < 1.5, g, constant(p, momentum) * b + constant(p, 1.0 - dampening) * g)
    return p - constant(p, lr) * ahead(g, b, momentum, nesterov), b


@law("sgd@2")
def sgd_uphill(
    p: Number, g: Number,
    lr: float, momentum: float, dampening: float, nesterov: float, weight_decay: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of SGD along the gradient."""
    return (p - constant(p, lr) * slope(p, g, maximize, weight_decay),)


@law("sgd@2", "momentum")
def sgd_momentum_uphill(
    p: Number, g: Number, b: Number, step: float,
    lr: float, momentum: float, dampening: float, nesterov: float, weight_decay: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of SGD with momentum along the gradient."""
    g = slope(p, g, maximize, weight_decay)
    one, zero = constant(p, 1.0), constant(p, 0.0)
    begins = select(step < 1.5, one, zero)
    b = begins * g + (one - begins) * (constant(p, momentum) * b + constant(p, 1.0 - dampening) * g)
    return p - constant(p, lr) * ahead(g, b, momentum, nesterov), b


@formula
def ahead(g: Number, b: Number, momentum: float, nesterov: float) -> Number:
    """The way along the buffer, or further along it as Nesterov looks."""
    return select(nesterov != 0.0, g + constant(b, momentum) * b, b)


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
        momentum: weight of the old buffer.
        dampening: share of a new gradient that is left out of the buffer.
        nesterov: look ahead along the buffer; needs momentum and no dampening.
        weight_decay: factor of the L2 penalty.
        maximize: whether to climb, by the negated gradient; traces record it as ``sgd@2``.

    >>> from dgrr.runtime import SGD
    >>> params, rule = {"w": np.ones(2)}, SGD(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -1.0])}, rule.init(params))
    >>> params["w"]
    array([0.5, 1.5])
    """

    later: ClassVar[tuple[str, ...]] = ("maximize",)

    lr: float | Schedule
    momentum: float = 0.0
    dampening: float = 0.0
    _: KW_ONLY
    nesterov: bool = False
    weight_decay: float = 0.0
    maximize: bool = False

    @property
    def chosen(self) -> PointLaw:
        """The law with the buffer that momentum needs, in the version that knows ``maximize`` if that is set."""
        return self.laws[2 * self.maximize + (self.momentum != 0)]
