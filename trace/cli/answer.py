"""What a command answers: text for people, one JSON object for programs, and an exit code for the shell."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ... import __version__
from ..exit_codes import Exit
from ..json_value import json_value
from ..v2.verdict import Verdict

_VERDICTS = {
    Exit.OK: "ok",
    Exit.USAGE: "usage",
    Exit.IO: "io",
    Exit.VALIDATION: "corrupt",
    Exit.DIVERGED: "diverged",
    Exit.REPLAY: "update",
    Exit.UNPROVEN: "unproven",
    Exit.LOSSY: "lossy",
    Exit.INTERRUPTED: "interrupted",
}
"""The verdict where a command ends without one of its own."""


_FOR_GIT = (Exit.OK, Exit.DIVERGED, Exit.INTERRUPTED)
"""Good, bad, and the end of the search; of anything else nothing is known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a command.

    `text` is for standard output; `error`, with `before` before it, for standard error: what keeps a command from
    its answer, or what is wrong. `result` holds the answer as dicts, lists, texts and numbers.
    """

    code: Exit
    verdict: str
    result: Mapping[str, object] | None = None
    text: str = ""
    error: str = ""
    before: str = "dgrr: "

    def for_git(self) -> "Answer":
        """The same with an exit code for `git bisect run`, to which an error is a bad commit unless it is told."""
        return self if self.code in _FOR_GIT else replace(self, code=Exit.SKIPPED)

    def to_json(self, command: str | None, paths: Sequence[str]) -> str:
        """The JSON object that docs/command_line.md describes, in ASCII, with a line for every entry."""
        envelope = {
            "command": command,
            "version": __version__,
            "verdict": self.verdict,
            "exit_code": self.code,
            "paths": paths,
            "error": self.error or None,
            "result": self.result,
        }
        return json.dumps(json_value(envelope), indent=2, allow_nan=False)


def done(result: Mapping[str, object], text: str) -> Answer:
    """The answer of a command that did what it was asked for."""
    return Answer(Exit.OK, "ok", result, text)


def failed(code: Exit, error: str, verdict: str = "", before: str = "dgrr: ") -> Answer:
    """The answer of a command that was kept from its answer."""
    return Answer(code, verdict or _VERDICTS[code], error=error, before=before)


class Judged(Protocol):
    """What ends in one word: a report, a comparison, a recovery, an audit."""

    @property
    def verdict(self) -> Verdict:
        """The word."""
        ...


def judged(found: Judged, result: Mapping[str, object], *, answers: bool) -> Answer:
    """What was found, which answers what was asked, or is what is wrong."""
    stream = {"text" if answers else "error": str(found)}
    return Answer(found.verdict.exit_code, found.verdict.value, result, **stream, before="")
