"""What is kept of a run, and where: what a trainer and a recorder are both told."""

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from numbers import Real
from os import PathLike
from typing import Any, Literal, TypeAlias, cast, get_args

from ..errors import DomainError
from ..system import FilePath
from .notes import Notes, plain_notes

Mode: TypeAlias = Literal["digest", "grads", "full", "bare"]
"""What is kept of each step: digests, gradients too, or the state too. Of "bare", not even the state of keyframes."""
Digest: TypeAlias = Literal["xxh3-128", "sha256"]
Ops: TypeAlias = Literal["first", "every"] | Collection[int] | int | None
"""The first step, every step, those of a list, every step while so many bytes last, or none."""
KeyframeEvery: TypeAlias = int | timedelta
"""A distance between keyframes: steps, or time of the run."""

COMMIT_EVERY = 1024
"""After how many steps a trace is brought to the disk."""


@dataclass(frozen=True, slots=True)
class Keep:
    """What to record of a run, and where. A bare path means ``Keep(path)``.

    Args:
        path: final name of the trace.
        record: what the trace keeps of each step. "grads" keeps gradients, so the file alone proves every update.
            "digest" keeps digests: the proof then needs the model and the data. "full" also keeps every tensor after
            the step. "bare" keeps digests but no states, for comparisons only.
        ops: the steps whose every value and gradient get a digest too, so that a comparison names the first op that
            differs: "first", "every", their numbers, or a number of bytes, for every step until so many are written.
            Each takes about as long as a second step.
        values: how many bytes of elements the trace keeps of the first and of the last step, in addition to ``record``:
            of gradients, then of the tensors after the step.
        sketches: whether the trace keeps a sketch of every tensor after the last step, and of every gradient of that
            step if the optimizer keeps nothing of them. From 64 bytes each, a comparison with `rtol` and `atol`
            estimates how far apart two runs of digests are.
        state_every: after how many steps the whole state is digested. None: after each step if the state has at most 1
            MiB, or if a run of another framework keeps digests only; else after 16.
        keyframe_every: after how many steps the trace stores the whole state, from which `dgrr.trace.at` rebuilds later
            steps. Fewer steps make that faster and the trace larger. Rounded up to a multiple of ``state_every``. A
            ``timedelta`` gives a time instead.
        keyframe_budget: how many bytes these states may take, except the first: their distance doubles whenever half of
            the rest is used up. None: no bound.
        digest: the digest of the trace: "xxh3-128", which finds accidents, or "sha256", which takes longer and whose
            last digest you can publish or sign.
        overwrite: whether the trace may replace one at its path: a finished trace, which stays until the new one is
            sealed, or an unfinished one, which starts again.
        commit_every: after how many steps the record is flushed to disk, so that it survives a power cut; None: only
            when the trace is sealed.
        created_at: the time in its header, in nanoseconds since 1970; None: now. With a ``salt`` the same run on the
            same machine gives the same bytes.
        salt: the 16 bytes that distinguish its frames from those of other traces; None: random ones.
        largest_payload: larger frames are written in parts.
        notes: what you want to find in the trace later, such as ``{"lr": 1e-3, "data": "digits"}``: texts, numbers,
            booleans, None, and lists and mappings of these, 64 KiB in all; copied. The host, the versions and the time
            are added to them; an empty mapping notes only these. None notes nothing. Notes are recorded, not proven.

    Raises DomainError for any other value; for notes with the name of the entry.

    >>> Keep("run.dgrr", record="digest", keyframe_every=100).overwrite
    False
    """

    path: FilePath
    _: KW_ONLY
    record: Mode = "grads"
    ops: Ops = None
    values: int = 0
    sketches: bool = False
    state_every: int | None = None
    keyframe_every: KeyframeEvery = 4096
    keyframe_budget: int | None = None
    digest: Digest = "xxh3-128"
    overwrite: bool = False
    commit_every: int | None = COMMIT_EVERY
    created_at: int | None = None
    salt: bytes | None = None
    largest_payload: int = 1 << 26
    notes: Notes | None = None

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            if not kind.has(getattr(self, name)):
                raise DomainError(f"Keep: argument {name!r}: expected {kind.said}, got {getattr(self, name)!r}")
        if self.notes is not None:
            object.__setattr__(self, "notes", plain_notes("Keep: argument 'notes'", self.notes))

    @classmethod
    def of(cls, trace: "FilePath | Keep") -> "Keep":
        """What is said of a run by a path, or by a `Keep`."""
        return trace if isinstance(trace, Keep) else cls(trace)


def _is_choice_of_steps(ops: Any) -> bool:
    if ops is None or ops in ("first", "every") or (type(ops) is int and ops >= 0):
        return True
    if isinstance(ops, str | bytes) or not isinstance(ops, Collection):
        return False
    return all(type(step) is int and step >= 0 for step in cast(Collection[object], ops))


def _is_integer(value: Any, least: int) -> bool:
    """Whether it is an integer of at least so much, whatever its type."""
    return isinstance(value, Real) and float(value).is_integer() and float(value) >= least


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a field may be, in words and as a test."""

    said: str
    has: Callable[[Any], bool]


def _integer(least: int, of: str = "", *, optional: bool = False) -> _Kind:
    words = f"a whole number{of} of at least {least}" + (" or None" if optional else "")
    return _Kind(words, lambda value: (optional and value is None) or _is_integer(value, least))


_KINDS = {
    "path": _Kind("a path", lambda path: isinstance(path, str | PathLike)),
    "record": _Kind("'digest', 'grads', 'full' or 'bare'", lambda record: record in get_args(Mode)),
    "ops": _Kind("'first', 'every', the numbers of steps, a number of bytes or None", _is_choice_of_steps),
    "values": _integer(0, " of bytes"),
    "sketches": _Kind("True or False", lambda sketches: isinstance(sketches, bool)),
    "state_every": _integer(1, optional=True),
    "keyframe_every": _Kind(
        "a whole number of at least 1, or a timedelta above 0",
        lambda every: every > timedelta(0) if isinstance(every, timedelta) else _is_integer(every, 1),
    ),
    "keyframe_budget": _integer(0, " of bytes", optional=True),
    "digest": _Kind("'xxh3-128' or 'sha256'", lambda digest: digest in get_args(Digest)),
    "commit_every": _integer(1, optional=True),
    "created_at": _integer(0, optional=True),
    "salt": _Kind("16 bytes or None", lambda salt: salt is None or (isinstance(salt, bytes) and len(salt) == 16)),
    "largest_payload": _Kind(
        "a multiple of 8 from 4096 to 2^30",
        lambda size: _is_integer(size, 1 << 12) and size <= 1 << 30 and not size % 8,
    ),
}
