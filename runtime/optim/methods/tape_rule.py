"""What the built-in rules that are written in ops share: their numbers, and the law that is made of an update."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ....tape import AnyVar, DomainError, ops
from ....tape.values.spec import Spec
from ..ops_law import OpsLaw, Update
from ..rates.schedules import Schedule
from ..rule import Rule
from ..scalars import number


class TapeRule(Rule):
    """A rule whose `update` is written in ops. Its numbers are constants there: computed in float64, rounded once."""

    flags: ClassVar[tuple[str, ...]] = ("maximize",)
    """The fields that are True or False; traces record them as 1 or 0."""

    shares: ClassVar[tuple[str, ...]] = ()
    """The fields that are numbers in [0, 1); the others are of at least 0."""

    betas: tuple[float, float]
    """The decays of running averages, of a rule that has two."""

    @property
    def buffers(self) -> tuple[str, ...]:
        """What is kept of each parameter, zeros at first."""
        return ()

    def kept(self, spec: Spec) -> Sequence[Spec]:
        """The shapes and dtypes of the buffers of a parameter."""
        return [spec] * len(self.buffers)

    @abstractmethod
    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: AnyVar, step: AnyVar) -> Any:
        """The parameter after the update, or a tuple of it and the buffers; rate and number are float64 scalars."""

    def __post_init__(self) -> None:
        for name in self._fields():
            object.__setattr__(self, name, self._checked(name, getattr(self, name)))

    def _fields(self) -> list[str]:
        """The names of the fields: of the decays of averages both are one field."""
        return [*dict.fromkeys("betas" if name in ("beta1", "beta2") else name for name in self.names)]

    def _checked(self, name: str, value: Any) -> Any:
        where = f"{self._title}: {name}"
        if name == "lr" and isinstance(value, Schedule):
            return value
        if name == "betas":
            return pair(where, value)
        if name in self.flags:
            return flag(where, value)
        return number(where, value, below=1.0) if name in self.shares else number(where, value)

    @property
    def beta1(self) -> float:
        """The first of the decays."""
        return self.betas[0]

    @property
    def beta2(self) -> float:
        """The second of the decays."""
        return self.betas[1]

    @property
    def law(self) -> OpsLaw:
        """The update in ops."""
        return law_of_ops(self._title, self.update, self.buffers)._replace(shapes=self.kept)

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``."""
        return cls(**as_fields(hyper, cls.flags))


def law_of_ops(title: str, update: Update, buffers: tuple[str, ...]) -> OpsLaw:
    """The law of an update that is told the rate and the number of the step in float64."""
    return OpsLaw(title, update, buffers, ("lr",), counts=True, precise=True)


def as_fields(hyper: Mapping[str, Any], flags: Sequence[str]) -> dict[str, Any]:
    """Hyperparameters as traces record them, as the fields of a rule."""
    found = {name: bool(value) if name in flags else value for name, value in hyper.items()}
    if "beta1" in found:
        found["betas"] = (found.pop("beta1"), found.pop("beta2"))
    return found


def flag(where: str, value: object) -> bool:
    """``value`` as a bool, else DomainError."""
    if value not in (False, True):
        raise DomainError(f"{where}: expected False or True, got {value!r}")
    return bool(value)


def pair(where: str, given: object) -> tuple[float, ...]:
    """``given`` as two floats in [0, 1), else DomainError."""
    betas = np.asarray(given, object)
    if betas.shape != (2,):
        raise DomainError(f"{where}: expected two numbers in [0, 1), got {given!r}")
    return tuple(number(f"{where}[{i}]", beta, below=1.0) for i, beta in enumerate(betas))


def slope(p: AnyVar, g: AnyVar, *, maximize: bool, weight_decay: float = 0.0) -> AnyVar:
    """The gradient of what is made small, with an L2 penalty."""
    g = -g if maximize else g
    return g + weight_decay * p if weight_decay else g


def mixed(old: AnyVar, new: AnyVar, share: float) -> AnyVar:
    """A running average after a new value: ``share * old + (1 - share) * new``."""
    return share * old + (1.0 - share) * new


def correction(beta: float, step: AnyVar) -> AnyVar:
    """``1 - beta ** step`` in float64, as ``-expm1(step * log(beta))``."""
    return -ops.expm1(step * ops.log(step.tape.const(np.array(beta))))


def like(p: AnyVar, value: AnyVar) -> AnyVar:
    """A float64 scalar rounded once to the dtype of a parameter."""
    return ops.cast(value, p.dtype)


def shrunk(p: AnyVar, lr: AnyVar, weight_decay: float) -> AnyVar:
    """The parameter after decoupled weight decay: ``(1 - lr * weight_decay) * p``."""
    return like(p, 1.0 - lr * weight_decay) * p if weight_decay else p


def at_least(x: AnyVar, low: float) -> AnyVar:
    """Every element, or ``low`` where it is smaller."""
    bound: Any = low
    return ops.maximum(x, bound)


def norm(x: AnyVar) -> AnyVar:
    """The Euclidean norm of all elements."""
    return ops.sqrt(ops.reduce_sum(x * x))
