"""Rules whose law is a formula: their kernel as a primitive of steps, and the same update in ops."""

# kernels: none

from typing import Any, ClassVar

import numpy as np

from ....tape import AnyVar, DomainError
from ..kernels import bias_corr
from ..laws.in_ops import in_ops, whole_power
from ..laws.pointwise import Law, PointLaw
from ..state_ops import FLOAT64, STATE_OPS, WORK, StateOp
from .field_rule import FieldRule
from .registry import enter
from .rule import Rule


def about(law: PointLaw) -> dict[str, Any]:
    """What a rule has from its law: name, hyperparameters, the state of all parameters and what counts in it."""
    own: dict[str, Any] = {"rule": law.rule, "names": law.names, "scalars": Rule.scalars, "counters": ()}
    if "corrections" in law.law.scalars:
        own["scalars"] = {**Rule.scalars, "corrections": ((2,), FLOAT64)}
        own["counters"] = ((bias_corr, ("corrections", "step", "hyper")),)
    return own


def primitive(law: PointLaw) -> StateOp:
    """The kernel of a law, as graphs of steps have it."""
    own = law.law
    kept = 1 + len(own.buffers)
    return StateOp(
        own.kernel, in_place=kept, work=WORK, inputs=kept + 1 + len(own.scalars) + 1, alike=kept + 1, elementwise=True,
        reference=law.reference,
    )  # fmt: skip


class PointRule(FieldRule):
    """A rule whose law is a formula: ``class Lion(PointRule, law=lion)``; its fields are what the formula takes.

    A rule may have several laws, of which `chosen` is one: ``law=(sgd, sgd_momentum)``.

    >>> from dataclasses import dataclass
    >>> from dgrr.runtime.optim import PointRule, law
    >>> from dgrr.tape.record import Number, constant
    >>> @law("straight@1")
    ... def straight(p: Number, g: Number, lr: float) -> tuple[Number, ...]:
    ...     return (p - constant(p, lr) * g,)
    >>> @dataclass(frozen=True)
    ... class Straight(PointRule, law=straight):
    ...     lr: float = 0.5
    >>> rule, params = Straight(), {"w": np.ones(2)}
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"]
    array([0.5, 2. ])
    """

    laws: ClassVar[tuple[PointLaw, ...]]

    def __init_subclass__(cls, law: PointLaw | tuple[PointLaw, ...] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        if law:
            cls.laws = (law,) if isinstance(law, PointLaw) else law
            for name, value in about(cls.laws[0]).items():
                setattr(cls, name, value)
            for own in cls.laws:
                STATE_OPS[own.law.kernel.name] = primitive(own)
                enter(cls, own.rule, own.names)

    def __post_init__(self) -> None:
        super().__post_init__()
        missing = [name for name in self.chosen.names if not hasattr(self, name)]
        if missing:
            expected = f"expected a field for each hyperparameter of its formula ({', '.join(self.chosen.names)})"
            raise DomainError(f"{self._title}: {expected}, got none for {missing[0]!r}")
        for name, value in about(self.chosen).items():
            if value != getattr(self, name):
                object.__setattr__(self, name, value)

    @property
    def chosen(self) -> PointLaw:
        """The law, of a rule that has several the one that its fields ask for."""
        return self.laws[0]

    @property
    def law(self) -> Law:
        """The kernel of the formula."""
        return self.chosen.law

    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: Any, step: Any) -> tuple[AnyVar, ...]:
        """The same update in ops, which can be differentiated: the new parameter and buffers, to the bit.

        Args:
            p: the parameter.
            g: its gradient.
            buffers: those of ``law.buffers``.
            lr: the rate, a number or a float64 scalar on the tape.
            step: the number of the step, from 1, likewise.
        """
        rate, count = (p.tape.const(np.array(x, FLOAT64)) if not hasattr(x, "tape") else x for x in (lr, step))
        scalars: list[Any] = [count] if "step" in self.law.scalars else []
        if "corrections" in self.law.scalars:
            betas = [float(getattr(self, name)) for name in self.names[1:3]]
            scalars = [1.0 - whole_power(beta, count) for beta in betas]
        numbers = [float(getattr(self, name)) for name in self.names[1:]]
        made: tuple[AnyVar, ...] = in_ops(self.chosen.formula)(p, g, *buffers, *scalars, rate, *numbers)
        return made
