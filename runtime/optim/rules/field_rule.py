"""Rules whose hyperparameters are the fields of a frozen dataclass: checked, and made again from what traces record."""

import re
from collections.abc import Mapping
from dataclasses import fields
from inspect import get_annotations
from typing import Any, ClassVar, Self, cast

from ....tape.record.described import types_of
from ....tape.record.kinds import Kind
from ....tape.record.kinds.values import NOT_NEGATIVE, ValueKind
from ....tape.record.refusals import Kinds
from ..kinds import BETAS, COUNT, FLAG, WHOLE
from .rule import Rule

TYPE = re.compile(r"(?!.*ClassVar).*?\b(bool|tuple|int|float)\b")
"""What says in an annotation of which sort a field is."""


class FieldRule(Rule):
    """A rule whose fields are its hyperparameters, the two of a pair of decays in one field, ``betas``.

    They are numbers of at least 0, whole ones from 1 on, True or False; ``kinds={"rho": SHARE}`` says where another is.

    Args:
        lr: step size.
        betas: decay of the two running averages.
        maximize: whether to climb, by the negated gradient.
    """

    usual: ClassVar[Mapping[str, ValueKind]] = {"tuple": BETAS, "int": COUNT, "float": NOT_NEGATIVE}
    """What fields of a sort are."""

    betas: tuple[float, float]
    """The decays of running averages, of a rule that has two."""

    later: ClassVar[tuple[str, ...]] = ()
    """Flags that are in the rule's text where they are set: older checkpoints, which know it by that, have none."""

    def __init_subclass__(cls, kinds: Kinds | None = None, **options: Any) -> None:
        """Give every field a kind, where there is one for its sort."""
        sorts = {name: TYPE.match(str(hint)) for name, hint in get_annotations(cls).items() if name not in cls.kinds}
        usual = {name: cls.usual[sort[1]] for name, sort in sorts.items() if sort and sort[1] in cls.usual}
        super().__init_subclass__(kinds={**usual, **(kinds or {})}, **options)

    @property
    def beta1(self) -> float:
        """The first of the decays."""
        return self.betas[0]

    @property
    def beta2(self) -> float:
        """The second of the decays."""
        return self.betas[1]

    def __repr__(self) -> str:
        names = [field.name for field in fields(cast(Any, self))]
        shown = [f"{name}={getattr(self, name)!r}" for name in names if name not in self.later or getattr(self, name)]
        return f"{self._title}({', '.join(shown)})"

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``, where flags and whole numbers are floats."""
        types, given = types_of(cls), dict(hyper)
        if "beta1" in given:
            given["betas"] = (given.pop("beta1"), given.pop("beta2"))
        return cls(**{name: _as_field(types.get(name), value) for name, value in given.items()})


def _as_field(kind: Kind | None, value: Any) -> Any:
    """A number as a flag or a whole one, if a field wants that and it is one."""
    takes = kind.expected if kind else ""
    if takes == FLAG.expected and value in (0, 1):
        return bool(value)
    return int(value) if takes == WHOLE.expected and value % 1 == 0 else value
