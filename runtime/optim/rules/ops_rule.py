"""Rules that users write in ops: a function becomes a class of rules, as `Adam` is one."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from ....tape.errors import DomainError
from ....tape.record.kinds.values import FINITE
from ..laws.ops_law import OpsLaw, Update
from ..rates.schedules import Schedule
from .registry import require_own_name
from .rule import Rule

COUNT = "step"
"""The scalar that is no hyperparameter: the number of the update."""


class OpsRule(Rule):
    """What `ops_rule` makes classes from: a rule whose update is a function of ops."""

    operation: ClassVar[OpsLaw]
    """The function, and what it is given."""

    if TYPE_CHECKING:

        def __init__(self, lr: float | Schedule = ..., **hyperparameters: float) -> None: ...

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every hyperparameter a kind."""
        super().__init_subclass__(kinds={name: FINITE for name in cls.names if name != "lr"}, **options)

    @property
    def law(self) -> OpsLaw:
        """The function of ops."""
        return self.operation

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``."""
        return cls(**hyper)


def ops_rule(name: str) -> Callable[[Update], type[OpsRule]]:
    """A decorator that makes a class of rules of an update that is written in ops.

    The function is ``update(p, g, *buffers, lr, …)``: after the parameter and its gradient the buffers by name, which
    begin as zeros, then, as keywords, the hyperparameters with their defaults, ``lr`` among them, and ``step`` if the
    number of the update, from 1, is wanted. It returns the new parameter, or a tuple of it and the new buffers in
    their order. It is run once for each shape when a step is captured, so it must hold ops and no values; it is
    given each hyperparameter and the count as a value without axes, rounded once to the dtype of the parameter.
    The class is made of the hyperparameters, ``lr`` first and the others by name; ``lr`` may be a schedule.

    Source: the classes of torch.optim and the functions of optax, which are made of operations too.
    Shapes: parameters of any shape; gradients and buffers have that of their parameter.
    Dtypes: parameters float32 or float64; gradients and buffers as their parameter; the state's ``step`` int64.

    Args:
        name: name and version of the rule, as traces record it, such as "mine@1": another one for every change of
            what it computes. Those of built-in rules are taken.

    Raises:
        DomainError: the name is none or taken, or the function has other parameters than these.

    >>> from dgrr.runtime.optim import ops_rule
    >>> @ops_rule("heavy_ball@1")
    ... def HeavyBall(p, g, velocity, *, lr=0.5, momentum=0.5):
    ...     velocity = momentum * velocity + g
    ...     return p - lr * velocity, velocity
    >>> rule, params = HeavyBall(lr=0.25), {"w": np.ones(2)}
    >>> rule
    HeavyBall(lr=0.25, momentum=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -1.0])}, rule.init(params))
    >>> params["w"]
    array([0.75, 1.25])
    """
    require_own_name(f"ops_rule: {name!r}", name)

    def make(update: Update) -> type[OpsRule]:
        title = f"ops_rule: {name!r}: {update.__name__}"
        buffers, scalars = _parameters(title, update)
        hyper = sorted(scalars.keys() - {COUNT}, key=lambda key: (key != "lr", list(scalars).index(key)))
        fields = [_field(key, scalars[key]) for key in hyper]
        law = OpsLaw(update.__name__, update, tuple(buffers), tuple(hyper), COUNT in scalars)
        own = {"rule": name, "names": tuple(hyper), "operation": law, "__doc__": update.__doc__}
        made = make_dataclass(update.__name__, fields, bases=(OpsRule,), namespace=own, frozen=True)
        made.__module__, made.__qualname__ = update.__module__, update.__qualname__
        return cast(type[OpsRule], made)

    return make


def _field(name: str, default: Any) -> tuple[str, Any, Any]:
    by_name, given = name != "lr", {} if default is inspect.Parameter.empty else {"default": default}
    return name, float if by_name else float | Schedule, field(kw_only=by_name, **given)


def _parameters(title: str, update: Update) -> tuple[list[str], dict[str, Any]]:
    """The buffers of an update, and its scalars with their defaults. Raises DomainError for another signature."""
    parameters = inspect.signature(update).parameters.values()
    places = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    scalars = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    if len(places) < 2 or len(places) + len(scalars) < len(parameters):
        expected = "expected a parameter, its gradient and buffers by their places, and hyperparameters by name"
        raise DomainError(f"{title}: {expected}, got {inspect.signature(update)}; write (p, g, BUFFERS…, *, lr, …)")
    if "lr" not in scalars:
        given = ", ".join(scalars) or "none"
        raise DomainError(f"{title}: expected 'lr' among the hyperparameters, which stand behind '*', got {given}")
    taken = sorted(name for name in scalars if hasattr(OpsRule, name) and name != COUNT)
    if taken:
        raise DomainError(f"{title}: expected names of its own for hyperparameters, got {taken[0]!r}, which rules use")
    if COUNT in places or scalars.get(COUNT, inspect.Parameter.empty) is not inspect.Parameter.empty:
        raise DomainError(f"{title}: expected 'step' behind '*' and without a default: it is the number of the update")
    return places[2:], scalars
