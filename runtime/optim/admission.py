"""Rules of users, checked before the first step: what every mode, a trace and a replay will need of them."""

from dataclasses import is_dataclass
from typing import Any

from ...tape.errors import DomainError
from .laws.known import HYPER
from .laws.ops_law import OpsLaw
from .laws.pointwise import CONSTANTS, Law
from .lbfgs.lbfgs import LBFGS
from .rules.registry import RULES, require_own_name
from .rules.rule import INT64, Rule
from .state_ops import WORK, StateOp, admit

FIXED = ("init", "step", "advance", "hyperparameters", "hyper", "hyper_at", "schedule")
"""What a rule has from `Rule`: captured steps, traces and replays do the same in their own way."""


def require_rule(given: object) -> Rule:
    """``given`` if steps can run by it in every mode, and traces can record and prove it, else DomainError.

    The kernels of a user's rule are entered among the primitives of captured steps.
    """
    if isinstance(given, LBFGS):
        raise DomainError(
            "optimizer: LBFGS: expected a rule that makes an update of one gradient, which can be captured, recorded "
            "and proven, got one that evaluates the loss as often as it likes; call its "
            "step(params, lambda p: gradients(loss_fn, p, batch), state)"
        )
    if not isinstance(given, Rule):
        raise DomainError(f"optimizer: expected a rule, such as Adam(1e-3), got {given!r}")
    cls = type(given)
    where = f"optimizer: {cls.__name__}"
    if cls in [known.rule for known in RULES.values()]:
        return given
    require_own_name(f"{where}: rule", getattr(given, "rule", None))
    if not is_dataclass(given):
        raise DomainError(
            f"{where}: expected a frozen dataclass, because checkpoints identify it by its text, got a plain class"
        )
    for method in FIXED:
        if getattr(cls, method) is not getattr(Rule, method):
            expected = "expected the one of Rule, as captured steps run the law and not this"
            raise DomainError(f"{where}: {method}: {expected}, got an override; write it as a law, or with ops_rule")
    _require_hyperparameters(where, given)
    law: Any = given.law
    if isinstance(law, Law):
        _admit_kernels(where, given, law)
    elif not isinstance(law, OpsLaw):
        raise DomainError(f"{where}: law: expected a Law, or the one of ops_rule, got {law!r}")
    return given


def _require_hyperparameters(where: str, rule: Rule) -> None:
    """A trace holds hyperparameters as numbers by name, from which the rule must follow."""
    names = rule.names
    if len(set(names)) != len(names) or names[:1] != ("lr",):
        raise DomainError(f"{where}: names: expected 'lr', then the other hyperparameters, each once, got {names!r}")
    hyper = rule.hyperparameters(1)
    made = type(rule).from_hyperparameters(hyper)
    if made.hyperparameters(1) != hyper or made.law != rule.law:
        raise DomainError(
            f"{where}: from_hyperparameters: expected the rule that has {hyper}, by which a trace is replayed, got "
            f"{made!r} with {made.hyperparameters(1)}"
        )


def _admit_kernels(where: str, rule: Rule, law: Law) -> None:
    if rule.schedule is not None and len(rule.names) > HYPER and CONSTANTS not in law.scalars:
        raise DomainError(
            f"{where}: lr: expected a number, as the rule has {len(rule.names)} hyperparameters and a kernel reads at "
            f"most {HYPER} under a schedule, got {rule.lr!r}; use ops_rule"
        )
    if rule.scalars.get("step") != ((), INT64):
        raise DomainError(f"{where}: scalars: expected 'step', an int64 without axes, got {dict(rule.scalars)}")
    missing = [name for name in law.scalars if name not in (*rule.scalars, CONSTANTS)]
    if missing:
        raise DomainError(f"{where}: law: expected scalars among {', '.join(rule.scalars)}, got {missing[0]!r}")
    kept = 1 + len(law.buffers)
    count = kept + 1 + len(law.scalars) + 1
    admit(f"{where}: law", StateOp(law.kernel, in_place=kept, work=WORK, inputs=count, alike=kept + 1))
    for kernel, names in rule.counters:
        admit(f"{where}: counters", StateOp(kernel, in_place=1, sized=None, inputs=len(names)))
