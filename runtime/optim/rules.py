"""Stochastic gradient descent, Adam and AdamW, with the names, defaults and formulas of torch.optim.

Each rule is one expression tree of correctly rounded operations. Constants are computed in float64 and
rounded once to the parameter's dtype; everything else is computed in that dtype, operation by operation and
without fused multiply-add, so the elementwise operations of numpy give the same bits.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ...tape.errors import DomainError
from .kernels import adam_step, bias_corr, sgd_momentum_step, sgd_step
from .rule import Law, Rule, ScalarTypes
from .scalars import fraction, number
from .schedules import Schedule

FLOAT64 = np.dtype(np.float64)


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

    def __post_init__(self) -> None:
        _normalise(self, "momentum", "weight_decay")
        object.__setattr__(self, "dampening", fraction("SGD: dampening", self.dampening))
        if self.nesterov not in (False, True):
            raise DomainError(f"SGD: nesterov: expected False or True, got {self.nesterov!r}")
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            given = f"momentum={self.momentum!r}, dampening={self.dampening!r}"
            raise DomainError(f"SGD: nesterov: expected momentum above 0 and dampening=0, got {given}")
        object.__setattr__(self, "nesterov", bool(self.nesterov))

    @property
    def law(self) -> Law:
        """`sgd_momentum_step` with one buffer, or `sgd_step` with none."""
        if self.momentum == 0:
            return Law(sgd_step, (), (), ())
        return Law(sgd_momentum_step, ("momentum",), ("step",), ())

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``."""
        return cls(**hyper)


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

    def __post_init__(self) -> None:
        _normalise(self, "eps", "weight_decay")
        object.__setattr__(self, "betas", _betas(type(self).__name__, self.betas))

    @property
    def law(self) -> Law:
        """`adam_step` with two buffers."""
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
        return cls(hyper["lr"], (hyper["beta1"], hyper["beta2"]), hyper["eps"], hyper["weight_decay"])


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay.

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


RULES: dict[str, type[Rule]] = {cls.rule: cls for cls in (SGD, Adam, AdamW)}
"""Every rule by name."""


NAME = re.compile(r"[a-z][a-z0-9_]*@[1-9][0-9]*")
"""What a rule may be called."""

LONGEST = 64
"""Characters of a name."""

TAKEN = {"clip_value", *[name.partition("@")[0] for name in RULES]}
"""What is built in, in every version."""


def require_own_name(where: str, name: object) -> str:
    """The name of a user's rule. Raises DomainError for what is no name and version, or is built in."""
    if not isinstance(name, str) or len(name) > LONGEST or not NAME.fullmatch(name):
        expected = f"expected a name and a version, such as 'rmsprop@1', of at most {LONGEST} characters"
        raise DomainError(f"{where}: {expected}, got {name!r}")
    if name.partition("@")[0] in TAKEN:
        raise DomainError(f"{where}: expected a name that is not built in, got {name!r}; choose another")
    return name


def make_rule(name: str, hyper: Mapping[str, float], rules: Mapping[str, type[Rule]] | None = None) -> Rule:
    """The rule of a name and its `hyperparameters`, as traces record them.

    ``rules`` are classes by name besides those that are built in.

    Raises:
        KeyError: no rule has this name.
        DomainError: a hyperparameter is missing, unknown or out of bounds.

    >>> from dgrr.runtime import Adam, make_rule
    >>> make_rule("adam@1", Adam(3e-4).hyperparameters()) == Adam(3e-4)
    True
    """
    known = {**(rules or {}), **RULES}
    if name not in known:
        raise KeyError(f"make_rule: expected one of {', '.join(known)}, got {name!r}")
    rule = known[name]
    if set(hyper) != set(rule.names):
        given = ", ".join(hyper) or "nothing"
        raise DomainError(f"make_rule: {name}: expected {', '.join(rule.names)}, got {given}")
    return rule.from_hyperparameters(hyper)


def _normalise(rule: Rule, *names: str) -> None:
    """Make ``lr``, unless it is a schedule, and the named fields floats of at least 0, or raise DomainError."""
    for name in names if rule.schedule is not None else ("lr", *names):
        value = number(f"{type(rule).__name__}: {name}", getattr(rule, name))
        object.__setattr__(rule, name, value)


def _betas(rule: str, given: object) -> tuple[float, ...]:
    """``given`` as two floats in [0, 1), else DomainError."""
    betas = np.asarray(given, object)
    if betas.shape != (2,):
        raise DomainError(f"{rule}: betas: expected two numbers in [0, 1), got {given!r}")
    return tuple(number(f"{rule}: betas[{i}]", beta, below=1.0) for i, beta in enumerate(betas))
