"""Which parameters are meant: by a pattern of their names, or by a predicate of name and value."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import numpy as np

from ...base.arrays import Array, Arrays
from ...tape.errors import DomainError
from .rules.rule import Rule

Predicate: TypeAlias = Callable[[str, Array], bool]
Pattern: TypeAlias = str | Predicate
"""A pattern as of `fnmatch`, or ``predicate(name, value)``, which is asked once, of the values at the start."""


@dataclass(frozen=True)
class ChosenNames:
    """What stands for a predicate once it was asked: the parameters that it chose.

    Its text is that of the names alone, by which checkpoints of one process know it in another.
    """

    names: tuple[str, ...]
    label: str = field(repr=False)

    def __str__(self) -> str:
        return self.label


Settled: TypeAlias = str | ChosenNames

BOOLS: Any = (bool, np.bool_)


def matches(pattern: Any, name: str) -> bool:
    """Whether a pattern, or what stands for a predicate, is of a parameter."""
    return name in pattern.names if isinstance(pattern, ChosenNames) else fnmatchcase(name, pattern)


def require_pattern(where: str, pattern: object) -> None:
    """Raises DomainError for what is neither pattern nor predicate."""
    if not isinstance(pattern, str | ChosenNames) and not callable(pattern):
        raise DomainError(f"{where}: expected patterns of names such as '*.bias', or predicates, got {pattern!r}")


def named(pattern: object) -> str:
    """A pattern as errors show it."""
    return repr(pattern) if isinstance(pattern, str) else str(pattern)


def settled_frozen(patterns: Sequence[Any], params: Arrays) -> tuple[Settled, ...]:
    """Patterns with what their predicates choose among all parameters in their place."""
    labels = [str(pattern) for pattern in patterns if not callable(pattern)]
    return tuple([_chosen("frozen", p, params, labels) if callable(p) else p for p in patterns])


def settled_rules(rules: Mapping[Any, Rule], frozen: Iterable[Settled], params: Arrays) -> dict[Settled, Rule]:
    """Rules with what their predicates choose in their place, of what is not frozen and no pattern before matches."""
    left = {name: value for name, value in params.items() if not any(matches(pattern, name) for pattern in frozen)}
    labels, made = [str(pattern) for pattern in rules if not callable(pattern)], dict[Settled, Rule]()
    for given, rule in rules.items():
        pattern = _chosen("optimizer", given, left, labels) if callable(given) else given
        left = {name: value for name, value in left.items() if not matches(pattern, name)}
        made[pattern] = rule
    return made


def _chosen(where: str, predicate: Any, params: Arrays, labels: list[str]) -> ChosenNames:
    """Ask a predicate of each parameter; ``labels`` are taken, and its own becomes one of them."""
    label = _label(predicate, labels)
    labels.append(label)
    return ChosenNames(
        tuple([name for name, value in params.items() if _holds(where, label, predicate, name, value)]), label
    )


def _holds(where: str, label: str, predicate: Callable[[str, Array], Any], name: str, value: Array) -> bool:
    said: Any = predicate(name, value)
    if not isinstance(said, BOOLS):
        raise DomainError(f"{where}: {label}: expected True or False for parameter {name!r}, got {said!r}")
    return bool(said)


def _label(predicate: Predicate, taken: Sequence[str]) -> str:
    """What people know a predicate by: its name, numbered where that is taken."""
    name = getattr(predicate, "__name__", type(predicate).__name__).strip("<>")
    number = next(n for n in range(1, len(taken) + 2) if _numbered(name, n) not in taken)
    return _numbered(name, number)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} {number}"
