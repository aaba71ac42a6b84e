"""What is kept of a run, and where: what a trainer and a recorder are both told."""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from numbers import Real
from os import PathLike
from typing import Any, Literal, cast, get_args

from .errors import DomainError

Path = str | PathLike[str]
Mode = Literal["digest", "grads", "full", "bare"]
"""What is kept of each step: digests, gradients too, or the state too. Of "bare", not even the state of keyframes."""
Digest = Literal["xxh3-128", "sha256"]
Ops = Literal["first", "every"] | Collection[int] | int | None
"""The first step, every step, those of a list, every step while so many bytes last, or none."""
KeyframeEvery = int | timedelta


@dataclass(frozen=True, slots=True)
class Keep:
    """What is kept of a run, and where. A bare path in its place is ``Keep(path)``.

    Args:
        path: final name of the trace.
        record: what is kept of each step. "grads" keeps gradients, so that every update can be proved from the file
            alone; "digest" keeps digests, which need the model and the data for the proof; "full" what stands after
            the step too. "bare" keeps digests, and not the states from which steps are computed again: to compare.
        ops: the steps of which the trace also has a digest of every value and gradient, so that a comparison names the
            first op that differs: "first", "every", their numbers, or every step until so many bytes are written. Each
            costs about a second step.
        keyframe_every: after how many steps the trace also has the whole state, from which `dgrr.trace.at` rebuilds the
            steps behind it; fewer make that quicker, and the trace larger. Of a state above 1 MiB rounded up to a
            multiple of 16. A ``timedelta`` says after how much time instead. None leaves it to the recorder: 4096.
        keyframe_budget: how many bytes these states may take, the first excepted: their distance doubles whenever half
            of what is left is used up. None: any number.
        digest: by what the trace is digested: "xxh3-128", which finds accidents, or "sha256", which takes longer, and
            whose last digest can be published or signed.
        overwrite: whether the trace may replace what stands at its path: a finished trace, which stays until the new
            one is sealed, or an unfinished one, which is begun anew.

    Raises DomainError for what is none of these.

    >>> Keep("run.dgrr", record="digest", keyframe_every=100).overwrite
    False
    """

    path: Path
    _: KW_ONLY
    record: Mode = "grads"
    ops: Ops = None
    keyframe_every: KeyframeEvery | None = None
    keyframe_budget: int | None = None
    digest: Digest = "xxh3-128"
    overwrite: bool = False

    def __post_init__(self) -> None:
        every, budget = self.keyframe_every, self.keyframe_budget
        if not isinstance(cast(object, self.path), str | PathLike):
            raise self._refused("path", "a path")
        if self.record not in get_args(Mode):
            raise self._refused("record", "'digest', 'grads', 'full' or 'bare'")
        if not _is_choice_of_steps(self.ops):
            raise self._refused("ops", "'first', 'every', the numbers of steps, a number of bytes or None")
        if not (every is None or _is_distance(every)):
            raise self._refused("keyframe_every", "a whole number of at least 1, or a timedelta above 0")
        if budget is not None and not _is_whole(budget, 0):
            raise self._refused("keyframe_budget", "a whole number of bytes of at least 0")
        if self.digest not in get_args(Digest):
            raise self._refused("digest", "'xxh3-128' or 'sha256'")

    def _refused(self, name: str, expected: str) -> DomainError:
        return DomainError(f"Keep: argument {name!r}: expected {expected}, got {getattr(self, name)!r}")


def _is_choice_of_steps(ops: object) -> bool:
    if ops is None or ops in ("first", "every") or (type(ops) is int and ops >= 0):
        return True
    if isinstance(ops, str | bytes) or not isinstance(ops, Collection):
        return False
    return all(type(step) is int and step >= 0 for step in cast(Collection[object], ops))


def _is_distance(every: object) -> bool:
    return every > timedelta(0) if isinstance(every, timedelta) else _is_whole(every, 1)


def _is_whole(value: Any, least: int) -> bool:
    """Whether it is a whole number of at least so much, whatever its type."""
    return isinstance(value, Real) and float(value).is_integer() and float(value) >= least
