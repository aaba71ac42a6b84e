"""What a test that does not agree with its golden file says."""

import shlex
from dataclasses import dataclass
from itertools import takewhile

from ..comparing.result import Cause, Comparison
from .errors import GoldenError, GoldenMismatchError


@dataclass(frozen=True, slots=True)
class Commands:
    """The paths and commands of a failure, as they can be pasted where the tests were started.

    Args:
        golden, present: the two traces.
        accept: the command that makes the present trace the golden one.
    """

    golden: str
    present: str
    accept: tuple[str, ...]

    @property
    def diff(self) -> tuple[str, ...]:
        """The command that shows how they differ."""
        return "dgrr", "diff", "--proven", self.golden, self.present


def failure(error: GoldenError, commands: Commands, *, short: bool) -> str:
    """The text of a failure: why, the golden file, what is wrong, and the commands that show and accept it.

    pytest shows the first line beside the name of the test, in its short summary.
    """
    lines = [f"golden trace {commands.golden}", *_said(error, short=short)]
    if isinstance(error, GoldenMismatchError):
        lines.insert(0, headline(error.comparison))
    if isinstance(error, GoldenMismatchError):
        lines.append(f"to look at it: {shlex.join(commands.diff)}")
    return "\n".join([*lines, f"to accept it:  {shlex.join(commands.accept)}"])


def headline(found: Comparison) -> str:
    """Where two runs part, and why, in some words: ``step 0: gelu instead of relu``.

    >>> from dgrr.trace import Verdict
    >>> text = "step 7 is the first that differs: it was given another batch; first leaf"
    >>> headline(Comparison("a.dgrr", "b.dgrr", Verdict.DIVERGED, text, Cause.DATA, 7))
    'step 7: it was given another batch'
    """
    if found.cause is None:
        return f"{found.verdict.value}: {found.sentence}"
    return f"{'before step 0' if found.step is None else f'step {found.step}'}: {_why(found)}"


def _why(found: Comparison) -> str:
    if found.op is not None and found.cause in (Cause.MODEL, Cause.GRADIENT):
        return found.op.short if " instead of " in found.op.short else f"{found.op.short} differs"
    _, _, behind = found.sentence.partition(" is the first that differs: ")
    return (behind or found.sentence).partition("; first ")[0]


def _said(error: GoldenError, *, short: bool) -> list[str]:
    """What is wrong; in short, the sentence that a comparison begins with."""
    lines = str(error).splitlines()
    return list(takewhile(lambda line: not line.startswith("  a: "), lines)) if short else lines
