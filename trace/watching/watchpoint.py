"""What a watchpoint says: the first step at which a condition holds, where in the program, and by what numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...base.printed import Printed
from ...screen.showing import counted, listed
from ..json_value import Plain
from .nodes import WatchedNode


@dataclass(frozen=True, repr=False)
class Watchpoint(Plain, Printed):
    """The answer of `when`. True if the condition holds at a step."""

    path: str
    """Of the trace."""
    condition: str
    step: int | None
    """The first step at which it holds; None: it holds at none of them."""
    node: WatchedNode | None
    """What it holds of; None where it names no node of the tape."""
    figures: Mapping[str, float]
    """The numbers that the condition compares, at that step, by its own words for them."""
    first: int
    last: int
    """The steps that were looked at: up to the one that was found."""
    untried: int
    """Steps that have nothing of a name, such as no gradient, and for which it was not asked."""

    def __bool__(self) -> bool:
        return self.step is not None

    def __str__(self) -> str:
        if self.step is None:
            title = f"{self.path}: {self.condition}: at none of steps {self.first} to {self.last}"
        else:
            title = f"{self.path}: {self.condition}: first at step {self.step}"
        return listed(title, self._about())

    def __repr__(self) -> str:
        return f"<{str(self).splitlines()[0]}>"

    def _about(self) -> dict[str, object]:
        found: dict[str, object] = {name: f"{value:.9g}" for name, value in self.figures.items()}
        if self.node is not None:
            found["node"] = str(self.node)
            if self.node.line:
                found["line"] = self.node.line
        if self.untried:
            found["not tried"] = f"at {counted(self.untried, 'step')}, which lack a name in it"
        return found
