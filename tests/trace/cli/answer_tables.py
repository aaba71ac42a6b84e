"""The tables of docs/command_line.md, which say what an answer with ``--json`` holds, and an answer held to them."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "command_line.md"
TABLE = re.compile(r"^### (.+)\n\n\| key \| type \| what it is \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)


def tables() -> dict[str, dict[str, str]]:
    """Table → key → type."""
    return {name: dict(ROW.findall(rows)) for name, rows in TABLE.findall(PAGE.read_text())}


def is_number(value: Any) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or value in ("nan", "inf", "-inf")


PLAIN: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "text": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": is_number,
    "figure": lambda value: value is None or is_number(value),
    "value": lambda value: isinstance(value, str) or is_number(value),
    "null": lambda value: value is None,
}


class Tables:
    """Answers are held to the page; `used` are the tables that an answer was of."""

    def __init__(self) -> None:
        self.tables, self.used = tables(), set[str]()

    def check(self, answer: Any) -> None:
        """Hold an answer, as it was read from JSON, to the page."""
        problems = list(self._problems(answer, "answer", "answer"))
        if answer["result"] is not None:
            problems += self._problems(answer["result"], answer["command"], "result")
        assert not problems, "\n".join(problems)

    def _problems(self, value: Any, wanted: str, where: str) -> Iterator[str]:
        """How a value is not what is wanted: a plain type, a table, or one of several."""
        ways = [list(self._one(value, way, where)) for way in wanted.split(" or ")]
        if all(ways):
            yield from min(ways, key=len)

    def _one(self, value: Any, wanted: str, where: str) -> Iterator[str]:
        if wanted.startswith("list of "):
            if not isinstance(value, list):
                yield f"{where}: expected a list, got {value!r}"
                return
            for i, item in enumerate(value):
                yield from self._problems(item, wanted[8:], f"{where}[{i}]")
        elif wanted.startswith("map of "):
            if not isinstance(value, dict):
                yield f"{where}: expected a map, got {value!r}"
                return
            for key, item in value.items():
                yield from self._problems(item, wanted[7:], f"{where}.{key}")
        elif wanted in PLAIN:
            if not PLAIN[wanted](value):
                yield f"{where}: expected {wanted}, got {value!r}"
        else:
            yield from self._table(value, wanted, where)

    def _table(self, value: Any, name: str, where: str) -> Iterator[str]:
        if not isinstance(value, dict) or list(value) != list(self.tables[name]):
            yield f"{where}: expected the keys {list(self.tables[name])} of {name}, got {value!r}"
            return
        self.used.add(name)
        for key, wanted in self.tables[name].items():
            yield from self._problems(value[key], wanted, f"{where}.{key}")
