"""Which steps of a run have a digest of every value and gradient recorded."""

import sys

from ....base.runs.keep import Ops


class OpsSchedule:
    """The steps that `Keep.ops` asks for."""

    def __init__(self, ops: Ops) -> None:
        self._every = ops == "every"
        self._left = ops if isinstance(ops, int) else 0
        self._steps = frozenset([0] if ops == "first" else () if ops is None or isinstance(ops, str | int) else ops)

    def wants(self, step: int) -> bool:
        """Whether the digests of a step are asked for."""
        return self._every or self._left > 0 or step in self._steps

    def room(self, step: int) -> int:
        """How many steps from one on are before the next whose digests are asked for."""
        if self._every or self._left > 0:
            return 0
        return min((each - step for each in self._steps if each >= step), default=sys.maxsize)

    def spend(self, nbytes: int) -> None:
        """Count bytes that were written."""
        self._left -= nbytes
