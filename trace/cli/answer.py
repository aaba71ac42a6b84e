"""What a command answers: text for people, one JSON object for programs, and an exit code for the shell."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from ... import __version__
from ..exit_codes import Exit
from ..json_value import json_value
from ..v2.verdict import Verdict

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

    def beside(self, fact: "Fact") -> "Answer":
        """The same with something more that was found."""
        text = "\n".join([text for text in (self.text, fact.text) if text])
        return replace(self, result={**(self.result or {}), fact.name: fact.value}, text=text)

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


class Fact(NamedTuple):
    """One thing that a command has found: its name and value for programs, and its lines for people, if any."""

    name: str
    value: object
    text: str = ""


def untold(**values: object) -> list[Fact]:
    """What people are not told by itself."""
    return [Fact(name, value) for name, value in values.items()]


def listed(rows: Iterable[str]) -> str:
    """A line for each, below what they are of."""
    return "\n".join([f"  {row}" for row in rows])


def written_page(name: str, path: str, nbytes: int) -> Fact:
    """A page that was written."""
    return Fact(name, path, f"{path}: {nbytes:,} bytes, open it in a browser")


def part(name: str, facts: Sequence[Fact]) -> Fact:
    """Facts that are one together."""
    return Fact(name, _by_name(facts), _text(facts))


def _by_name(facts: Sequence[Fact]) -> dict[str, object]:
    return {fact.name: fact.value for fact in facts}


def _text(facts: Sequence[Fact]) -> str:
    return "\n".join([fact.text for fact in facts if fact.text])


def done(*facts: Fact) -> Answer:
    """The answer of a command that did what it was asked for."""
    return ended(Exit.OK, "ok", *facts)


def ended(code: Exit, verdict: str, *facts: Fact, error: str = "", before: str = "dgrr: ") -> Answer:
    """The answer of a command with an end of its own; ``error`` is what is wrong beside what it found."""
    return Answer(code, verdict, _by_name(facts), _text(facts), error, before)


def failed(code: Exit, error: str, verdict: str = "", before: str = "dgrr: ") -> Answer:
    """The answer of a command that was kept from its answer."""
    return Answer(code, verdict or code.word, error=error, before=before)


class Judged(Protocol):
    """What ends in one word: a report, a comparison, a recovery, an audit."""

    @property
    def verdict(self) -> Verdict:
        """The word."""
        ...


def judged(found: Judged, *facts: Fact, answers: bool) -> Answer:
    """What was found, one of the facts, which answers what was asked, or is what is wrong."""
    facts = tuple([fact._replace(text=str(found)) if answers and fact.value is found else fact for fact in facts])
    error = "" if answers else str(found)
    return ended(found.verdict.exit_code, found.verdict.value, *facts, error=error, before="")


def cut_before(path: str, step: int, steps: int) -> list[Fact]:
    """What of a trace of so many steps is left before a step."""
    text = f"{path}: state before step {step}; {steps - step} of {steps} steps discarded"
    return [Fact("step", step, text), *untold(kept=step, discarded=steps - step)]
