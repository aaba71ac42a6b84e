"""Errors of graphs."""

from ...tape.errors import DgrrError


class IRError(DgrrError, ValueError):
    """A graph that cannot be: the text names the node or value, what is wrong and what to do."""


class IRSyntaxError(DgrrError, ValueError):
    """A text or JSON that is no graph: ``IRGraph.parse: line 3: expected a role, got 'parm'``."""

    @classmethod
    def at(cls, where: str, expected: str, given: object) -> "IRSyntaxError":
        """What was expected at a place, and what stands there."""
        return cls(f"{where}: expected {expected}, got {given!r}")
