"""What a test that does not agree with its golden file says."""

import shlex
from dataclasses import dataclass
from itertools import takewhile

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
    """The text of a failure: the golden file, what is wrong, and the commands that show and accept it."""
    lines = [f"golden trace {commands.golden}", *_said(error, short=short)]
    if isinstance(error, GoldenMismatchError):
        lines.append(f"to look at it: {shlex.join(commands.diff)}")
    return "\n".join([*lines, f"to accept it:  {shlex.join(commands.accept)}"])


def _said(error: GoldenError, *, short: bool) -> list[str]:
    """What is wrong; in short, the sentence that a comparison begins with."""
    lines = str(error).splitlines()
    return list(takewhile(lambda line: not line.startswith("  a: "), lines)) if short else lines
