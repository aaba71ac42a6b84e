"""Stochastic gradient descent, Adam and AdamW, with the names, defaults and formulas of torch.optim.

Each rule is one expression tree of correctly rounded operations. Constants are computed in float64 and
rounded once to the parameter's dtype; everything else is computed in that dtype, operation by operation and
without fused multiply-add, so the elementwise operations of numpy give the same bits.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, Self, cast

import numpy as np

from ....tape import DomainError
from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.minmax import larger
from ....tape.numerics.simd.operations import Number, constant, select
from ..fields import as_fields, flag, pair
from ..kernels import adam_step, bias_corr, sgd_momentum_step, sgd_step
from ..pointwise import PointLaw, correction, law, mixed, root, shrunk, slope
from ..rates.schedules import Schedule
from ..rule import Law, Rule, ScalarTypes
from ..scalars import fraction, number

FLOAT64 = np.dtype(np.float64)

Numbers = tuple[Number, ...]

# ------------------------------------------------------------------ the second versions, which are formulas


@law("sgd@2")
def sgd_uphill(
    p: Number, g: Number, step: float,
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
    return p - constant(p, lr) * select(nesterov != 0.0, g + constant(p, momentum) * b, b), b


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


SECOND: dict[tuple[bool, bool], PointLaw] = {
    (False, False): adam_uphill,
    (False, True): adam_amsgrad,
    (True, False): adamw_uphill,
    (True, True): adamw_amsgrad,
}
"""The laws of Adam's second versions: by whether the decay is decoupled, and by ``amsgrad``."""

# ------------------------------------------------------------------ the rules


@dataclass(frozen=True)
class SGD(Rule):
    """Stochastic gradient descent with momentum, Nesterov's variant and an L2 penalty.

    One step on a parameter ``p`` with gradient ``g``; ``b`` is its momentum buffer, ``t`` the step, from 1::

        g = g + weight_decay * p                                       # if weight_decay is not 0
        b = g if t == 1 else momentum * b + (1 - dampening) * g        # if momentum is not 0
        g = g + momentum * b if nesterov else b                        # if momentum is not 0
        p = p - lr * g

    A parameter whose first gradient comes after step 1 starts from a buffer of zeros.

    Source: torch.optim.SGD; Sutskever, Martens, Dahl and Hinton (2013) for Nesterov's variant.
    Shapes: parameters of any shape; gradients and buffers have that of their parameter.
    Dtypes: parameters float32 or float64; gradients and buffers as their parameter; the state's ``step`` int64.

    Args:
        lr: step size, at least 0, or a schedule of step sizes.
        momentum: weight of the old buffer, at least 0.
        dampening: share of a new gradient that is left out of the buffer, in [0, 1].
        nesterov: look ahead along the buffer; needs momentum and no dampening.
        weight_decay: factor of the L2 penalty, at least 0.
        maximize: whether to climb, by the negated gradient; traces record it as ``sgd@2``.

    Raises:
        DomainError: a hyperparameter outside these bounds.

    >>> from dgrr.runtime import SGD
    >>> params, rule = {"w": np.ones(2)}, SGD(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -1.0])}, rule.init(params))
    >>> params["w"]
    array([0.5, 1.5])
    """

    rule: ClassVar[str] = "sgd@1"
    names: ClassVar[tuple[str, ...]] = ("lr", "momentum", "dampening", "nesterov", "weight_decay")

    lr: float | Schedule
    momentum: float = 0.0
    dampening: float = 0.0
    _: KW_ONLY
    nesterov: bool = False
    weight_decay: float = 0.0
    maximize: bool = False

    def __post_init__(self) -> None:
        _normalise(self, "momentum", "weight_decay")
        object.__setattr__(self, "maximize", flag("SGD: maximize", self.maximize))
        if self.maximize:
            _extend(self, "sgd@2")
        object.__setattr__(self, "dampening", fraction("SGD: dampening", self.dampening))
        if self.nesterov not in (False, True):
            raise DomainError(f"SGD: nesterov: expected False or True, got {self.nesterov!r}")
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            given = f"momentum={self.momentum!r}, dampening={self.dampening!r}"
            raise DomainError(f"SGD: nesterov: expected momentum above 0 and dampening=0, got {given}")
        object.__setattr__(self, "nesterov", bool(self.nesterov))

    def __repr__(self) -> str:
        return _text(self, "maximize")

    @property
    def law(self) -> Law:
        """`sgd_momentum_step` with one buffer, or `sgd_step` with none."""
        if self.maximize:
            return (sgd_momentum_uphill if self.momentum else sgd_uphill).law
        if self.momentum == 0:
            return Law(sgd_step, (), (), ())
        return Law(sgd_momentum_step, ("momentum",), ("step",), ())

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``."""
        return cls(**as_fields(hyper, ("maximize",)))


@dataclass(frozen=True)
class Adam(Rule):
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
    Shapes: parameters of any shape; gradients and buffers have that of their parameter.
    Dtypes: parameters float32 or float64; gradients and buffers as their parameter; the state's ``step`` int64.

    Args:
        lr: step size, at least 0, or a schedule of step sizes.
        betas: decay of the two running averages, each in [0, 1).
        eps: added to the denominator, at least 0.
        weight_decay: factor of the L2 penalty, at least 0.
        amsgrad: whether to divide by the largest ``v`` so far, which is then a third buffer.
        maximize: whether to climb, by the negated gradient. With either, traces record ``adam@2``.

    Raises:
        DomainError: a hyperparameter outside these bounds.

    >>> from dgrr.runtime.optim import Adam, Cosine
    >>> Adam(1e-3).hyperparameters()
    {'lr': 0.001, 'beta1': 0.9, 'beta2': 0.999, 'eps': 1e-08, 'weight_decay': 0.0}
    >>> Adam(lr=Cosine(1e-3, steps=1000)).hyperparameters(step=501)["lr"]
    0.0005
    """

    rule: ClassVar[str] = "adam@1"
    names: ClassVar[tuple[str, ...]] = ("lr", "beta1", "beta2", "eps", "weight_decay")
    scalars: ClassVar[ScalarTypes] = {**Rule.scalars, "corrections": ((2,), FLOAT64)}
    counters = ((bias_corr, ("corrections", "step", "hyper")),)
    decoupled: ClassVar[bool] = False

    lr: float | Schedule = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    _: KW_ONLY
    amsgrad: bool = False
    maximize: bool = False

    def __post_init__(self) -> None:
        name = type(self).__name__
        _normalise(self, "eps", "weight_decay")
        object.__setattr__(self, "betas", pair(f"{name}: betas", self.betas))
        for field in ("amsgrad", "maximize"):
            object.__setattr__(self, field, flag(f"{name}: {field}", getattr(self, field)))
        if self.amsgrad or self.maximize:
            _extend(self, f"{name.lower()}@2")

    def __repr__(self) -> str:
        return _text(self, "amsgrad", "maximize")

    @property
    def law(self) -> Law:
        """`adam_step` with two buffers."""
        if self.amsgrad or self.maximize:
            return SECOND[self.decoupled, self.amsgrad].law
        return Law(adam_step, ("m", "v"), ("corrections",), (int(self.decoupled),))

    @property
    def beta1(self) -> float:
        """Decay of the average of gradients."""
        return self.betas[0]

    @property
    def beta2(self) -> float:
        """Decay of the average of squared gradients."""
        return self.betas[1]

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``."""
        return cls(**as_fields(hyper, ("amsgrad", "maximize")))


@dataclass(frozen=True, repr=False)
class AdamW(Adam):
    """Adam with decoupled weight decay; ``amsgrad`` and ``maximize`` as there, recorded as ``adamw@2``.

    As `Adam`, but the gradient is left as it is and the parameter shrinks::

        p = (1 - lr * weight_decay) * p - ((lr / c1) * m) / (sqrt(v) / sqrt(c2) + eps)

    Source: Loshchilov and Hutter (2019), arXiv:1711.05101; torch.optim.AdamW.
    Shapes: parameters of any shape; gradients and buffers have that of their parameter.
    Dtypes: parameters float32 or float64; gradients and buffers as their parameter; the state's ``step`` int64.

    Raises:
        DomainError: a hyperparameter outside the bounds of `Adam`.

    >>> from dgrr.runtime import AdamW
    >>> params, rule = {"w": np.ones(1)}, AdamW(lr=0.5, weight_decay=0.5)
    >>> rule.step(params, {"w": np.zeros(1)}, rule.init(params))
    >>> params["w"]
    array([0.75])
    """

    rule: ClassVar[str] = "adamw@1"
    decoupled: ClassVar[bool] = True

    weight_decay: float = 1e-2


FUSED: dict[str, type[Rule]] = {cls.rule: cls for cls in (SGD, Adam, AdamW)}
"""The rules that are one kernel, by name, which those of other frameworks are held against."""


EXTENDED: dict[str, tuple[str, ...]] = {
    "sgd@2": (*SGD.names, "maximize"),
    "adam@2": (*Adam.names, "amsgrad", "maximize"),
    "adamw@2": (*Adam.names, "amsgrad", "maximize"),
}
"""The hyperparameters of the second versions, which are used where one of their flags is set."""


def _text(rule: Rule, *flags: str) -> str:
    """The rule as a call, flags where they are set alone: older checkpoints, which know it by its text, have none."""
    shown = [field.name for field in fields(cast(Any, rule)) if field.name not in flags or getattr(rule, field.name)]
    return f"{type(rule).__name__}({', '.join(f'{name}={getattr(rule, name)!r}' for name in shown)})"


def _extend(rule: Rule, name: str) -> None:
    """Give a rule the name, the hyperparameters and the state of its second version, a formula."""
    for attribute, value in {"rule": name, "names": EXTENDED[name], "scalars": Rule.scalars, "counters": ()}.items():
        object.__setattr__(rule, attribute, value)


def _normalise(rule: Rule, *names: str) -> None:
    """Make ``lr``, unless it is a schedule, and the named fields floats of at least 0, or raise DomainError."""
    for name in names if rule.schedule is not None else ("lr", *names):
        value = number(f"{type(rule).__name__}: {name}", getattr(rule, name))
        object.__setattr__(rule, name, value)
