"""Which rule updates which parameters of a run, by patterns, and which are frozen."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from ...base.arrays import Array, Arrays
from ...base.runs.completed_step import FROZEN, of_group
from ...base.runs.run import RuleGroup
from ...tape.errors import DomainError
from .admission import require_rule
from .averages import HYPERPARAMETER, Averages, ema_key
from .patterns import Pattern, Settled, matches, named, require_pattern
from .rules.rule import Rule

Optimizer: TypeAlias = Rule | Mapping[Any, Rule]
"""One rule for all parameters, or rules by `Pattern`, of which the first that matches counts.

The keys are not typed: a dict of a text and a predicate is one of objects to type checkers.
"""


@dataclass(frozen=True)
class ParameterGroup:
    """The parameters that one rule updates."""

    number: int
    pattern: str
    rule: Rule
    names: tuple[str, ...]

    @cached_property
    def keys(self) -> dict[str, str]:
        """The names that the rule has for the entries of its state, in their order, and those that the run has."""
        scalars = {key: of_group(key, self.number) for key in self.rule.scalars}
        buffers = [f"{buffer}/{name}" for buffer in self.rule.law.buffers for name in self.names]
        return {**scalars, **dict(zip(buffers, buffers, strict=True))}

    @property
    def owners(self) -> dict[str, str | None]:
        """The entries of the run's state and the parameter that each belongs to, None for those of all."""
        names = [*([None] * len(self.rule.scalars)), *[name for _ in self.rule.law.buffers for name in self.names]]
        return dict(zip(self.keys.values(), names, strict=True))

    def init(self, params: Arrays) -> dict[str, Array]:
        """The state of its parameters before the first step, by the run's names. Raises as `Rule.init` does."""
        state = self.rule.init({name: params[name] for name in self.names})
        return {key: state[own] for own, key in self.keys.items()}

    def step(self, params: Arrays, grads: Arrays, state: Arrays) -> None:
        """Update its parameters and their state, in place, from those of the run. Raises as `Rule.step` does."""
        own = {name: params[name] for name in self.names}
        kept = {key: state[other] for key, other in self.keys.items() if other in state}
        self.rule.step(own, {name: g for name, g in grads.items() if name in own}, kept)


class Groups:
    """The rules of a run, each with its parameters, in the order of their patterns.

    The state is one dict: that of each group in turn. What belongs to no parameter has the number of its group behind
    its name, but for the first: ``step``, ``step#1``.
    """

    def __init__(
        self, groups: Sequence[ParameterGroup], frozen: Sequence[str], averages: Averages | None = None
    ) -> None:
        self.groups, self.frozen, self.averages = tuple(groups), tuple(frozen), averages

    def init(self, params: Arrays) -> dict[str, Array]:
        """The state before the first step. Raises as `Rule.init` does; DomainError for two entries of one name."""
        own = {key: array for group in self.groups for key, array in group.init(params).items()}
        averages = {} if self.averages is None else self.averages.init(params)
        if own.keys() & averages.keys():
            raise DomainError("ema: expected rules without a buffer 'ema', which is the run's own; rename it")
        return own | averages

    def step(self, params: Arrays, grads: Arrays, state: Arrays) -> None:
        """Update parameters and state in place by one step. Raises as `Rule.step` does, and for a frozen parameter."""
        for name in self.frozen:
            if name in grads:
                raise DomainError(f"step: parameter {name!r}: expected no gradient, as it is frozen, got one")
        for group in self.groups:
            group.step(params, grads, state)
        if self.averages is not None:
            self.averages.step(params, state)

    @property
    def owners(self) -> dict[str, str | None]:
        """The entries of the state in their order and the parameter that each belongs to, None for those of many."""
        own = {key: name for group in self.groups for key, name in group.owners.items()}
        return own if self.averages is None else {**own, **{ema_key(name): name for name in self.averages.names}}

    def share(self, names: Collection[str]) -> "Groups":
        """The groups of some of the parameters, with the numbers that these have in the run, also of empty ones."""
        own = [replace(group, names=tuple([n for n in group.names if n in names])) for group in self.groups]
        averages = self.averages
        if averages is not None:
            averages = Averages(averages.decay, [n for n in averages.names if n in names])
        return Groups(own, (), averages)

    def hyperparameters(self, step: int) -> dict[str, float]:
        """Every hyperparameter of an update, from 1, by name, with the number of its group but for the first."""
        return self._hyperparameters(step) if self._fixed is None else self._fixed.copy()

    def hyperparameters_of(self, steps: range) -> list[dict[str, float]]:
        """The same of several updates; one dict for all where none follows a schedule."""
        return [self._fixed.copy()] * len(steps) if self._fixed is not None else list(map(self._hyperparameters, steps))

    @cached_property
    def _fixed(self) -> dict[str, float] | None:
        """The hyperparameters where none follows a schedule, looked up once."""
        scheduled = any(group.rule.schedule is not None for group in self.groups)
        return None if scheduled else self._hyperparameters(1)

    def _hyperparameters(self, step: int) -> dict[str, float]:
        every = [(group.number, group.rule.hyperparameters(step)) for group in self.groups]
        if self.averages is not None:
            every.append((len(every), {HYPERPARAMETER: self.averages.decay}))
        return {of_group(name, number): value for number, hyper in every for name, value in hyper.items()}

    def rates(self, step: int) -> dict[str, float]:
        """The learning rate of each group at an update, from 1, by its pattern."""
        return {group.pattern: group.rule.hyperparameters(step)["lr"] for group in self.groups}

    def recorded(self) -> list[RuleGroup]:
        """The groups as traces record them."""
        found = [
            RuleGroup(group.rule.rule, group.rule.names, (*group.names, *group.keys.values())) for group in self.groups
        ]
        found += [] if self.averages is None else [self.averages.recorded]
        return [*found, RuleGroup(FROZEN, (), self.frozen)] if self.frozen else found


def require_optimizer(given: object) -> Optimizer:
    """A rule, or a dict of rules by patterns, that steps can run by. Raises DomainError as `require_rule` does."""
    if not isinstance(given, Mapping):
        return require_rule(given)
    rules: Mapping[Any, Any] = given  # pyright: ignore[reportUnknownVariableType]
    if not rules:
        raise DomainError("optimizer: expected a rule, or rules by patterns of names, got an empty dict")
    for pattern, rule in rules.items():
        require_pattern("optimizer", pattern)
        require_rule(rule)
    return dict(rules)


def require_frozen(given: object) -> tuple[Pattern, ...]:
    """Patterns of frozen parameters. Raises DomainError for anything else, such as a single text."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DomainError(f"frozen: expected a list of patterns of names, got {given!r}; write frozen=[…]")
    patterns: tuple[Any, ...] = tuple(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    for pattern in patterns:
        require_pattern("frozen", pattern)
    return patterns


def frozen_names(patterns: Iterable[Pattern | Settled], names: Iterable[str]) -> tuple[str, ...]:
    """The parameters that are frozen, in their order."""
    return tuple([name for name in names if any(matches(pattern, name) for pattern in patterns)])


def grouped(
    optimizer: Optimizer, frozen: Sequence[Pattern | Settled], names: Iterable[str], ema: float | None = None
) -> Groups:
    """The groups of named parameters; ``frozen`` are patterns, which come before those of the rules.

    In the place of predicates stands what they chose.

    ``ema`` is the decay of the averages of all that is not frozen, None for none.

    Raises DomainError for a parameter that no pattern matches, and for a pattern that matches none that is left.
    """
    every = tuple(names)
    still = frozen_names(frozen, every)
    for pattern in frozen:
        if not any(matches(pattern, name) for name in every):
            raise DomainError(
                f"frozen: {named(pattern)}: expected a pattern that matches a parameter ({_listed(every)})"
            )
    left = [name for name in every if name not in still]
    averages = None if ema is None else Averages(ema, left)
    if isinstance(optimizer, Rule):
        return Groups([ParameterGroup(0, "*", optimizer, tuple(left))], still, averages)
    return Groups(_matched(optimizer, left, every), still, averages)


def _matched(rules: Mapping[Any, Rule], left: list[str], every: Sequence[str]) -> list[ParameterGroup]:
    groups = list[ParameterGroup]()
    for number, (pattern, rule) in enumerate(rules.items()):
        own = tuple([name for name in left if matches(pattern, name)])
        if not own:
            raise DomainError(
                f"optimizer: {named(pattern)}: expected a pattern that matches a parameter ({_listed(every)}) which is "
                "not frozen and which no pattern before it matches; leave it out, or put it first"
            )
        groups.append(ParameterGroup(number, str(pattern), rule, own))
        left = [name for name in left if name not in own]
    if left:
        patterns = ", ".join(map(named, rules))
        raise DomainError(
            f"optimizer: parameter {left[0]!r}: expected a pattern that matches it, got {patterns}; add '*' as the last"
        )
    return groups


_SHOWN = 8
"""How many names an error lists."""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN])) or "there are none"
    return f"{shown}, …" if len(names) > _SHOWN else shown
