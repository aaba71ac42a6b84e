"""Which steps of a run have a digest of every value and gradient recorded."""

from ....base.keep import Ops


class OpsSchedule:
    """The steps that `Keep.ops` asks for."""

    def __init__(self, ops: Ops) -> None:
        self._every = ops == "every"
        self._left = ops if isinstance(ops, int) else 0
        self._steps = frozenset([0] if ops == "first" else () if ops is None or isinstance(ops, str | int) else ops)

    def wants(self, step: int) -> bool:
        """Whether the digests of a step are asked for."""
        return self._every or self._left > 0 or step in self._steps

    def spend(self, nbytes: int) -> None:
        """Count bytes that were written."""
        self._left -= nbytes
