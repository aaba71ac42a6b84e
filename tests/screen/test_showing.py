"""What people read: words, rows, tables, in a terminal of any kind and in a notebook."""

import io
import os
import sys
from typing import Any

import pytest

from dgrr.base.printed import Printed, facts, panel, text
from dgrr.screen.panels import ShownAsPanel, folded, grid
from dgrr.screen.showing import (
    PLAIN_WIDTH,
    LateRows,
    cell,
    counted,
    drawn,
    facts_grid,
    listed,
    more,
    rate,
    rendered,
    shown_rows,
    size,
    styled,
    text_width,
)

from ..closed_html import Balanced


class Terminal(io.TextIOWrapper):
    """Standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1


def output(monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8", kind: Any = io.TextIOWrapper) -> None:
    monkeypatch.setattr(sys, "stdout", kind(io.BytesIO(), encoding))


# ------------------------------------------------------------------ words and rows


@pytest.mark.parametrize(
    ("count", "limit", "first", "last"),
    [
        (0, 40, range(0), range(0)),
        (40, 40, range(40), range(40, 40)),
        (41, 40, range(30), range(31, 41)),
        (2000, 40, range(30), range(1990, 2000)),
        (2000, None, range(2000), range(2000, 2000)),
        (9, 4, range(3), range(8, 9)),
        (9, 1, range(1), range(9, 9)),
    ],
)
def test_which_rows_are_shown(count: int, limit: int | None, first: range, last: range) -> None:
    assert shown_rows(count, limit) == (first, last)


def test_late_rows_are_made_when_they_are_asked_for() -> None:
    made: list[int] = []
    rows = LateRows(range(10, 1000), lambda n: made.append(n) or n)
    assert (len(rows), rows[-1], rows[2:5][1]) == (990, 999, 13)
    assert made == [999, 13]


def test_numbers_and_their_nouns() -> None:
    assert [counted(n, "step") for n in (0, 1, 1234)] == ["0 steps", "1 step", "1,234 steps"]
    assert counted(2, "leaf", "leaves") == "2 leaves"
    sizes = [1, 999, 1000, 999_949, 999_950, 10**9, 10**16]
    assert [size(n) for n in sizes] == ["1 byte", "999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "1.0 GB", "10000.0 TB"]
    assert [rate(5, s) for s in (0.0, 1.0, 0.001, 100.0)] == ["0 steps/s", "5 steps/s", "5,000 steps/s", "0.05 steps/s"]
    assert more(1960) == "… 1,960 more"
    assert listed("a run", {}) == "a run"


# ------------------------------------------------------------------ a terminal


def test_a_table_counts_what_it_does_not_show() -> None:
    lines = rendered(drawn("of [red]", ("n", "word"), [[1, "[/x]"], [None, "b"]], [[1000, ""]], 7)).splitlines()
    assert lines[0] == "of [red]"
    assert lines[4:8] == ["│    1 │ [/x] │", "│    - │ b    │", "│    ⋮ │ ⋮    │", "│ 1000 │      │"]
    assert lines[-1] == "… 7 more"


def test_where_there_is_no_terminal_text_is_wide_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    output(monkeypatch)
    assert text_width() == PLAIN_WIDTH
    assert "\x1b" not in styled(facts_grid({"a": 1}))


def test_text_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    output(monkeypatch, kind=Terminal)
    monkeypatch.setattr("dgrr.screen.showing.get_terminal_size", lambda descriptor: os.terminal_size((30, 9)))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    table = facts_grid({"a": "word " * 20})
    assert max(map(len, rendered(table).splitlines())) <= 30
    assert "\x1b[1m" in styled(table)
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in styled(table)


def test_a_terminal_without_boxes_gets_plain_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    output(monkeypatch, "ascii")
    shown = rendered(drawn("", ("n",), [[1]], [[3]], 1))
    assert shown.isascii()
    assert shown.splitlines()[-1] == "... 1 more"
    assert ":" in shown


def test_a_narrow_table_has_no_lines_between_its_columns() -> None:
    table = [("encoder.0.weight", 1.25), ("b", None)]
    assert rendered(drawn("", ("name", "norm"), table), 27).splitlines()[3] == "│ encoder.0.weight │ 1.25 │"
    narrow = rendered(drawn("", ("name", "norm"), table), 24).splitlines()
    assert narrow == ["name              norm", "─" * 22, "encoder.0.weight  1.25", "b                    -"]


def test_text_is_text_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """There rich would show what it is asked to write to a file."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "┃ n ┃" in rendered(drawn("", ("n",), [[1]]))


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_whatever_standard_output_is(monkeypatch: pytest.MonkeyPatch, stream: Any) -> None:
    monkeypatch.setattr(sys, "stdout", stream)
    assert "┃ n ┃" in rendered(drawn("", ("n",), [[1]]))


# ------------------------------------------------------------------ a notebook


HOSTILE = "<script>alert('&')</script>"


def test_html_is_escaped_and_closed_and_has_no_colours() -> None:
    table = grid((HOSTILE, "n"), [[HOSTILE, 0.123456]], [["", None]], 5)
    html = panel(HOSTILE, facts({HOSTILE: HOSTILE}), table, text(HOSTILE), folded(HOSTILE, text("x")))
    assert Balanced(html).data.count(HOSTILE) == 7
    assert "<script" not in html
    assert "color" not in html
    assert Balanced(html).data[-5:-1] != []
    assert "… 5 more" in html and "0.1235" in html


def test_numbers_stand_to_the_right() -> None:
    html = grid(("n", "word"), [[1, "a"], [None, "b"]])
    assert html.count("text-align:right") == html.count("text-align:left") == 3


class Thing(ShownAsPanel):
    def _title(self) -> str:
        return "Thing: 3 < 4"

    def about(self) -> dict[str, object]:
        return {"size": 3, "longer name": "x"}


class Note(Printed):
    def __str__(self) -> str:
        return "a < b"


def test_things_describe_themselves() -> None:
    assert repr([Thing()]) == "[<Thing: 3 < 4>]"
    assert str(Thing()) == "Thing: 3 < 4\n  size         3\n  longer name  x"
    assert Balanced(Thing()._repr_html_()).data == ["Thing: 3 < 4", "size", "3", "longer name", "x"]
    assert Balanced(Note()._repr_html_()).data == ["a < b"]


def test_cells() -> None:
    assert [cell(x) for x in (None, 0.1 + 0.2, 3, "")] == ["-", "0.3", "3", ""]
