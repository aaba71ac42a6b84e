"""The page of two runs that part, as a browser takes it apart, and runs and digests to make one of."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Keep, Trainer
from dgrr.tape import nn, ops
from dgrr.trace import Cause, Comparison, OpDifference, OpDigests, TapeNode, Verdict, write_diff
from dgrr.trace.comparing.ops import first_op

F = "float32"


def batches() -> list[Any]:
    return [np.random.default_rng(step).standard_normal((4, 3)).astype(np.float32) for step in range(3)]


def train(path: Path, activation: Any, *, rate: float = 0.1, keep: Any = "every", seed: int = 0) -> Any:
    """A run of two branches that meet in the loss; the activation stands in the first."""
    model = nn.Sequential(nn.Linear(3, 5), activation, nn.Linear(5, 2))
    params = {**model.init(seed), "other": np.ones((4, 3), np.float32)}

    def loss_fn(p: Any, x: Any) -> Any:
        own = {name: p[name] for name in params if name != "other"}
        return model(own, x).sum() + ops.exp(x * p["other"]).sum()

    Trainer(loss_fn, params, Adam(rate), trace=Keep(path, ops=keep)).fit(batches(), steps=3)
    return loss_fn


@dataclass
class Shown:
    """A row of the page: its classes, and the text of its mark and of each side."""

    classes: set[str]
    place: str = ""
    mark: str = ""
    sides: list[str] = field(default_factory=list[str])

    @property
    def at(self) -> tuple[int | None, int | None]:
        """The positions in both runs; an equal row that says both at once has one side."""
        found = [int(number[1]) if (number := re.search(r"#(\d+) ", side)) else None for side in self.sides]
        return found[0], found[-1]


class Page(HTMLParser):
    """A page as a browser takes it apart: rows by section, tables, texts; every element that is opened is closed."""

    VOID = ("meta", "path", "br")

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.rows: dict[str, list[Shown]] = {}
        self.cells: dict[str, list[list[str]]] = {}
        self.said: dict[str, str] = {}
        self.tags = list[str]()
        self.ids = list[str]()
        self._open = list[tuple[str, str]]()
        self._section = ""
        self.feed(self.text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        classes = given.get("class", "")
        if tag == "section":
            self._section = given["id"]
        if tag == "tr":
            self.cells.setdefault(self._section, []).append([])
        if tag in ("td", "th"):
            self.cells[self._section][-1].append("")
        if "r" in classes.split():
            self.rows.setdefault(self._section, []).append(Shown(set(classes.split()), given.get("id", "")))
        if "c" in classes.split():
            self.rows[self._section][-1].sides.append("")
        if tag not in self.VOID:
            self._open.append((tag, classes))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        inside = [classes for _, classes in self._open]
        if "mark" in inside:
            self.rows[self._section][-1].mark += data
        elif any("c" in classes.split() for classes in inside):
            self.rows[self._section][-1].sides[-1] += data
        elif any(tag in ("td", "th") for tag, _ in self._open):
            self.cells[self._section][-1][-1] += data
        else:
            self.said[self._section] = self.said.get(self._section, "") + data

    def marked(self, section: str, mark: str) -> set[tuple[int | None, int | None]]:
        return {row.at for row in self.rows[section] if mark in row.classes}


def written(found: Comparison, folder: Path) -> Page:
    assert write_diff(found, folder / "diff.html") == (folder / "diff.html").stat().st_size
    return Page(folder / "diff.html")


CHAIN = (
    TapeNode("leaf", F, (2,), name="w"),
    TapeNode("exp", F, (2,), (0,)),
    TapeNode("tanh", F, (2,), (0,)),
    TapeNode("sin", F, (2,), (1,)),
    TapeNode("add", F, (2,), (2, 3)),
    TapeNode("sum", F, (), (4,)),
)


def digests(values: str, grads: str, nodes: tuple[TapeNode, ...] = CHAIN) -> OpDigests:
    return OpDigests(nodes, tuple(c.encode() for c in values), tuple(None if c == "." else c.encode() for c in grads))


def parted(a: OpDigests, b: OpDigests, op: OpDifference | None = None, **more: Any) -> Comparison:
    given: dict[str, Any] = {"op": op or first_op(a, b), "ops": (a, b), **more}
    return Comparison("a.dgrr", "b.dgrr", Verdict.DIVERGED, "step 7 is the first", Cause.GRADIENT, 7, **given)
