"""Drift told from change: what another machine or library computes otherwise, and what other code does."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....base.runs.called_op import CalledOp
from .call_difference import CallChange, CallDifference, first_call

_KERNELS = ("aten.", "c10d", "_c10d_functional.", "lax.")
"""Begin the names of ops whose kernels are the framework's own."""

_MACHINE = ("cpu", "system")
"""The keys of an environment that name the machine; those of the framework begin with its name."""

NEAR = 1e-3
"""How far losses may be apart, relatively, that rounding alone has moved."""


def elsewhere(environment: Mapping[str, Any], framework: str) -> list[str]:
    """The keys that say that two runs had another machine, or another framework or setting of it; no commit does.

    >>> elsewhere({"torch threads": (1, 2), "sources": ("a", "b")}, "torch")
    ['torch threads']
    """
    told = [key for key in environment if key in _MACHINE or key.partition(" ")[0] == framework]
    return [key for key in told if key != f"{framework} commit"]


def is_drift(call: CallDifference) -> bool:
    """Whether a kernel of the framework gives other bits, told the same and of equal inputs."""
    return call.change is CallChange.GIVES and call.call.name.startswith(_KERNELS)


def first_change(a: Sequence[CalledOp], b: Sequence[CalledOp]) -> CallDifference | None:
    """The first call that is another op, is told another option, or draws from another state, whatever the values."""
    return first_call(*([_without_values(call) for call in calls] for calls in (a, b)))


def _without_values(call: CalledOp) -> CalledOp:
    said = (call.name, call.options, (), (), call.phase, call.scope, call.place)
    return CalledOp(*said, draws=call.draws, raised=call.raised, generator=call.generator)
