"""What a trace says without proof: for people to read, checked against no digest of what was computed."""

from typing import Any

from ..format.constants import ENVIRONMENT_EVENT
from ..format.frames import FRAMES, EventRecord
from ..format.header import Header


class OnlyTold:
    """What was met of it in a pass over a file."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._met = {"parent root"} if any(header.parent_root) else set[str]()
        self._environment = False

    def take(self, type: int, record: Any) -> None:
        """Note the next frame by its type, and what it says."""
        if type in FRAMES and FRAMES[type].told:
            self._met.add(FRAMES[type].told)
        self._environment |= isinstance(record, EventRecord) and record.kind == ENVIRONMENT_EVENT

    def notes(self) -> list[str]:
        """In a line, or two, for people."""
        notes = [f"recorded, not proven: {', '.join(sorted(self._met))}"] if self._met else []
        if any(self._header.environment) and not self._environment:
            notes.append("the text of the environment is not there, only its digest")
        return notes
