"""Rules whose hyperparameters are the fields of a frozen dataclass: checked, and made again from what traces record."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self, cast

import numpy as np

from ...tape.errors import DomainError
from .rates.schedules import Schedule
from .rule import Rule
from .scalars import number


class FieldRule(Rule):
    """A rule whose fields are its hyperparameters, the two of a pair of decays in one field, ``betas``."""

    flags: ClassVar[tuple[str, ...]] = ("maximize",)
    """The fields that are True or False; traces record them as 1 or 0."""

    shares: ClassVar[tuple[str, ...]] = ()
    """The fields that are numbers in [0, 1); the others are of at least 0."""

    betas: tuple[float, float]
    """The decays of running averages, of a rule that has two."""

    def __post_init__(self) -> None:
        for field in fields(cast(Any, self)):
            object.__setattr__(self, field.name, self._checked(field.name, getattr(self, field.name)))

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

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``."""
        return cls(**as_fields(hyper, cls.flags))


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
