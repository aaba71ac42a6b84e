"""Which steps of a run have a digest of every value and gradient recorded."""

from collections.abc import Collection
from typing import Literal, TypeAlias, cast

from typing_extensions import TypeIs

RecordOps: TypeAlias = Literal["first", "every"] | Collection[int] | int | None
"""The first step, every step, those of a list, every step while so many bytes last, or none."""


class OpsSchedule:
    """The steps that `record_ops` asks for. Raises ValueError for what is no such request."""

    def __init__(self, record_ops: RecordOps) -> None:
        self._every = record_ops == "every"
        self._left, self._steps = 0, frozenset[int]()
        if type(record_ops) is int and record_ops >= 0:
            self._left = record_ops
        elif record_ops == "first":
            self._steps = frozenset([0])
        elif _is_steps(record_ops):
            self._steps = frozenset(record_ops)
        elif record_ops is not None and not self._every:
            raise ValueError(
                "recorder: record_ops: expected 'first', 'every', the numbers of steps, a number of bytes or None, "
                f"got {record_ops!r}"
            )

    def wants(self, step: int) -> bool:
        """Whether the digests of a step are asked for."""
        return self._every or self._left > 0 or step in self._steps

    def spend(self, nbytes: int) -> None:
        """Count bytes that were written."""
        self._left -= nbytes


def _is_steps(given: object) -> TypeIs[Collection[int]]:
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        return False
    return all(type(step) is int and step >= 0 for step in cast(Collection[object], given))
