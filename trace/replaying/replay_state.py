"""The state of a run, recomputed from a keyframe by the rules the schema names."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from typing_extensions import TypeIs

from ... import runtime
from ...base.arrays import Array
from ...base.errors import DgrrError, DomainError
from ...base.runs.completed_step import EMA, FROZEN, of_group
from ...base.system import FilePath
from ...runtime.optim import Rule
from ...runtime.optim.averages import HYPERPARAMETER, Averages, ema_key
from ...runtime.optim.groups import Groups, ParameterGroup
from ...runtime.optim.rules.registry import require_own_name
from ...screen.named_arrays import NamedArrays
from ..v2.format.constants import COMPUTED, TensorRole
from ..v2.format.digest import TensorDigest
from ..v2.format.schema import TensorSpec
from ..v2.read.reader import TraceReader, open_reader
from ..v2.read.step_view import StepView
from ..v2.write.tensors import CORRECTIONS

Rules: TypeAlias = Collection[type[Rule]]
"""Classes of rules that users wrote."""


class UnknownRuleError(DgrrError, LookupError):
    """The trace was recorded with an optimizer rule that this library does not have."""


class ReplayState:
    """Every tensor of a trace before a step; `advance` applies one step in place.

    `values`: name → array, in the order of the schema; at first as given, such as those of a keyframe. They stay the
    same arrays until others are to be held, which `held` counts.
    """

    def __init__(self, trace: TraceReader, values: dict[str, Array], rules: Rules = ()) -> None:
        self._trace, self._rules = trace, by_name(rules)
        self.values, self.held = values, 0
        self._tensors = trace.schema.tensors
        self._made: tuple[tuple[float, ...], Groups] | None = None

    @property
    def count(self) -> int:
        """How many steps were done."""
        return int(self.values["step"])

    def of_role(self, role: TensorRole) -> dict[str, Array]:
        """The tensors of one role by name: the arrays themselves."""
        return NamedArrays({t.name: self.values[t.name] for t in self._tensors if t.role is role})

    def advance(self, view: StepView, grads: Mapping[str, Array], buffers: Mapping[str, Array]) -> None:
        """Apply the update of one step with its recorded hyperparameters, and take over the buffers after it.

        Raises:
            UnknownRuleError: a rule is not known.
            DgrrError: a rule refuses what the trace gives it.
        """
        if self._made is None or self._made[0] != view.record.hyper:
            self._made = view.record.hyper, recorded_groups(self._trace, view, self._rules)
        self._made[1].step(self.of_role(TensorRole.PARAM), grads, self.of_role(TensorRole.STATE))
        self.put(buffers)

    def put(self, values: Mapping[str, Array]) -> None:
        """Give tensors other elements."""
        for name, array in values.items():
            np.copyto(self.values[name], array)

    def hold(self, arrays: Mapping[str, Array]) -> None:
        """Have tensors lie in other arrays, which hold the same elements."""
        self.values.update(arrays)
        self.held += 1

    def first_other(self, recorded: Sequence[bytes]) -> str | None:
        """The first tensor that is not what digests, in the order of the schema, say of it; None if all are."""
        names = (t.name for t in self._tensors)
        pairs = zip(names, self._digests, recorded, strict=True)
        return next((name for name, digest, expected in pairs if digest(self.values[name]) != expected), None)

    @cached_property
    def _digests(self) -> list[TensorDigest]:
        return [TensorDigest(self._trace.header.algorithm, t.dtype, t.shape) for t in self._tensors]

    def corrections(self) -> tuple[float, ...] | None:
        """The bias corrections of all groups as the state holds them, for groups that record any.

        None where groups record some, and the state has no tensor for them.
        """
        names = [of_group(CORRECTIONS, i) for i, group in enumerate(self._trace.schema.rules) if group.corrections]
        if any(name not in self.values for name in names):
            return None
        return tuple(float(value) for name in names for value in self.values[name].ravel())


def _require_computed(rule: str, params: Sequence[TensorSpec]) -> None:
    """Raise UnknownRuleError for params of types in which this library computes nothing."""
    other = next((spec for spec in params if spec.dtype not in COMPUTED), None)
    if other is not None:
        raise UnknownRuleError(
            f"the rule '{rule}' is known for params of {' and '.join(COMPUTED)}, and {other.name!r} is {other.dtype}"
        )


def recorded_groups(
    trace: TraceReader, view: StepView, rules: Mapping[str, type[Rule]], changed: Mapping[str, float] | None = None
) -> Groups:
    """The rules of a step, each with its params; ``rules`` are classes by name besides those that are built in.

    ``changed`` are hyperparameters that are to be other ones than those of the step.

    Raises:
        UnknownRuleError: a rule is not known.
        DgrrError: a rule refuses its hyperparameters.
    """
    found, tensors = list[ParameterGroup](), trace.schema.tensors
    averages: Averages | None = None
    told = view.hyper | dict(changed or {})
    for number, group in enumerate(trace.schema.rules):
        if group.rule == FROZEN:
            continue
        hyper = {name: told[of_group(name, number)] for name in group.hyperparameters}
        if group.rule == EMA:
            averages = _averages(hyper, [tensors[i].name for i in group.tensors])
            continue
        try:
            rule = runtime.make_rule(group.rule, hyper, rules)
        except KeyError:
            raise UnknownRuleError(
                f"the rule '{group.rule}' is not known to this library; pass its class: rules=[…], or "
                "--rule MODULE:NAME of the command"
            ) from None
        params = [tensors[i] for i in group.tensors if tensors[i].role is TensorRole.PARAM]
        _require_computed(group.rule, params)
        names = [spec.name for spec in params]
        found.append(ParameterGroup(number, group.rule, rule, tuple(names)))
    return Groups(found, trace.schema.frozen, averages)


def _averages(hyper: Mapping[str, float], keys: Iterable[str]) -> Averages:
    """The averages that a trace records as state of these names."""
    return Averages(hyper[HYPERPARAMETER], [key.removeprefix(ema_key("")) for key in keys])


def is_rule(given: object) -> TypeIs[type[Rule]]:
    """Whether ``given`` is a class of rules."""
    return isinstance(given, type) and issubclass(given, Rule)


def by_name(rules: Iterable[object]) -> dict[str, type[Rule]]:
    """Classes of rules that users wrote, by the names that traces have for them.

    Raises:
        DomainError: something that is no such class.
    """
    found: dict[str, type[Rule]] = {}
    for rule in rules:
        if not is_rule(rule):
            raise DomainError(f"replay: rules: expected classes of rules, as ops_rule makes them, got {rule!r}")
        found[require_own_name(f"replay: rules: {rule.__name__}", getattr(rule, "rule", None))] = rule
    return found


def state_after(path: FilePath, step: int, *, rules: Rules = ()) -> dict[str, Array]:
    """Every param and optimizer state after `step`, recomputed from the last keyframe before it.

    `rules` are as for `replay`.

    Raises:
        DomainError: something among `rules` is no class of rules.
        NotRecordedError: the trace records no gradients.
        IndexError: there is no such step.
        UnknownRuleError, TraceFileError: the trace cannot be recomputed or read.
        DgrrError: a rule refuses what the trace gives it.
    """
    with open_reader(path, mode="tolerate_tail") as trace:
        last = trace[step].step
        state = ReplayState(trace, trace.keyframe(trace.last_keyframe(last)), rules)
        for i in range(trace.last_keyframe(last), last + 1):
            view = trace[i]
            state.advance(view, view.gradients(), view.buffers())
    return state.values
