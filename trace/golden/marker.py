"""What a test asks of its golden traces: the arguments of the marker ``golden``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, cast

from ...base.errors import DomainError
from ...base.runs.keep import Ops
from ..comparing.policy import Policy

_ARGUMENTS = ("policy", "every", "at")


@dataclass(frozen=True, slots=True)
class Marker:
    """How close a run must be to its golden trace, and at which steps the digests of its ops are recorded.

    Without a policy it is that of the run: bitwise, unless what records it says otherwise.
    """

    policy: Policy | None
    ops: Ops


def marker_of(marks: Iterable[tuple[tuple[Any, ...], Mapping[str, Any]]]) -> Marker:
    """What the markers of a test ask, given the arguments of each, the closest to the test first.

    Raises DomainError for an argument that there is not, or one of another type; the text says what was expected.

    >>> marker_of([((), {"policy": "ulp=4", "at": [0, 49]})])
    Marker(policy=Policy(patterns=(('*', Tolerance(ulp=4, rtol=None, atol=None)),), drift=False), ops=[0, 49])
    """
    given: dict[str, Any] = {}
    for args, named in marks:
        _check_names(args, named)
        given = {**named, **given}
    return Marker(_policy(given.get("policy")), _ops(given.get("every", "op"), given.get("at")))


def _check_names(args: Sequence[Any], named: Mapping[str, Any]) -> None:
    unknown = [repr(value) for value in args] + [name for name in named if name not in _ARGUMENTS]
    if unknown:
        raise DomainError(f"marker golden: expected policy=…, every=… and at=…, got {', '.join(unknown)}")


def _policy(given: Any) -> Policy | None:
    if given is None:
        return None
    try:
        return Policy.parse(given)
    except ValueError as error:
        raise DomainError(f"marker golden: {error}") from None


def _ops(every: Any, at: Any) -> Ops:
    if every not in ("op", "step"):
        raise DomainError(f"marker golden: argument 'every': expected 'op' or 'step', got {every!r}")
    if at is None:
        return "every" if every == "op" else None
    if every == "step":
        raise DomainError("marker golden: argument 'at': it names steps whose ops are recorded; leave out every='step'")
    try:
        steps = [_step(step) for step in at]
    except TypeError:  # it is no collection
        steps = []
    if steps and None not in steps:
        return cast(list[int], steps)
    raise DomainError(f"marker golden: argument 'at': expected a list of steps, such as [0, 1, 49], got {at!r}")


def _step(given: Any) -> int | None:
    """A step's number, or None for what is none."""
    try:
        return number if (number := index(given)) >= 0 and not isinstance(given, bool) else None
    except TypeError:
        return None
