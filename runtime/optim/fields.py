"""Rules whose hyperparameters are the fields of a frozen dataclass: checked, and made again from what traces record."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self, cast

import numpy as np

from ...tape.errors import DomainError
from ...tape.record.kinds.values import NOT_NEGATIVE
from .rates.schedules import Schedule
from .rule import Rule
from .scalars import SHARE, checked, flag, number


class FieldRule(Rule):
    """A rule whose fields are its hyperparameters, the two of a pair of decays in one field, ``betas``.

    They are numbers of at least 0; those of `bool` are True or False; ``kinds={"rho": SHARE}`` says where another is.
    """

    betas: tuple[float, float]
    """The decays of running averages, of a rule that has two."""

    def __post_init__(self) -> None:
        for field in fields(cast(Any, self)):
            object.__setattr__(self, field.name, self._checked(field.name, getattr(self, field.name)))

    @classmethod
    def flags(cls) -> list[str]:
        """The fields that are True or False; traces record them as 1 or 0."""
        return [field.name for field in fields(cast(Any, cls)) if field.type in (bool, "bool")]

    def _checked(self, name: str, value: Any) -> Any:
        if name == "lr" and isinstance(value, Schedule):
            return value
        usual = pair if name == "betas" else flag if name in self.flags() else NOT_NEGATIVE
        return checked(f"{self._title}: {name}", self.checks.get(name, usual), value)

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
        return cls(**as_fields(hyper, cls.flags()))


def as_fields(hyper: Mapping[str, Any], flags: Sequence[str]) -> dict[str, Any]:
    """Hyperparameters as traces record them, as the fields of a rule."""
    found = {name: bool(value) if name in flags else value for name, value in hyper.items()}
    if "beta1" in found:
        found["betas"] = (found.pop("beta1"), found.pop("beta2"))
    return found


def pair(where: str, given: object) -> tuple[float, ...]:
    """``given`` as two floats in [0, 1), else DomainError."""
    betas = np.asarray(given, object)
    if betas.shape != (2,):
        raise DomainError(f"{where}: expected two numbers in [0, 1), got {given!r}")
    return tuple(number(f"{where}[{i}]", beta, SHARE) for i, beta in enumerate(betas))
