"""Tests are handed to processes by the batch: one at a time takes longer than most of them run."""

from typing import Any

from xdist.scheduler import LoadGroupScheduling

BATCH = 16
"""Few enough that no process waits long for another that has the last of them."""


class Batches(LoadGroupScheduling):
    """pytest-xdist's groups; tests of none go together with those that were collected next to them."""

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        self._names: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        """The name of the group or batch that a test belongs to."""
        if nodeid not in self._names:
            group = super()._split_scope(nodeid)
            self._names[nodeid] = group if group != nodeid else f"batch {len(self._names) // BATCH}"
        return self._names[nodeid]
