"""Tables: rows of plain values, printed as they are; and the statistics that they show."""

import sys
from io import StringIO
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dgrr.screen.showing import cell
from dgrr.tape import DomainError, Tape
from dgrr.tape.values.tables import PlainTable, statistics

pytestmark = pytest.mark.quick

ROWS: list[dict[str, Any]] = [{"name": "w", "size": 3, "norm": 1.23456}, {"name": None, "size": 4, "norm": 0.5}]
TABLE = PlainTable("gradients", ("name", "size", "norm"), ROWS)


def test_a_table_is_its_rows() -> None:
    assert len(TABLE) == 2
    assert list(TABLE) == ROWS


def test_a_printed_table_has_title_columns_and_cells() -> None:
    title, *lines = str(TABLE).splitlines()
    assert title.strip() == "gradients"
    cells = [[cell.strip() for cell in line.strip("┃│").replace("┃", "│").split("│")] for line in lines[1:4:2]]
    assert cells == [["name", "size", "norm"], ["w", "3", "1.235"]]
    assert "\x1b" not in str(TABLE)
    assert not str(TABLE).endswith("\n")


def test_a_table_without_title_or_rows() -> None:
    text = str(PlainTable("", ("name", "size"), []))
    assert "name" in text.splitlines()[1]


def test_a_table_on_a_terminal() -> None:
    out = StringIO()
    Console(file=out, force_terminal=True, width=60, color_system="standard").print(TABLE)
    assert "1.235" in out.getvalue()
    assert "\x1b[" in out.getvalue()


def test_rows_by_a_column() -> None:
    rows = [{"name": name, "size": size} for name, size in (("b", 2), (None, None), ("a", 2), ("c", 3))]
    table = PlainTable("t", ("name", "size"), rows)
    assert [row["name"] for row in table.sorted("name")] == ["a", "b", "c", None]
    assert [row["name"] for row in table.sorted("size", descending=True)] == ["c", "b", "a", None]
    assert [row["name"] for row in table] == ["b", None, "a", "c"]
    assert (table.sorted("size").title, table.sorted("size").columns) == ("t", ("name", "size"))
    with pytest.raises(DomainError, match="^table: argument 'sort': expected one of name, size, got 'norm'$"):
        table.sorted("norm")


def test_rows_as_dicts_of_ones_own() -> None:
    dicts = TABLE.to_dicts()
    assert dicts == ROWS
    dicts[0]["name"] = "other"
    assert ROWS[0]["name"] == "w"


def test_a_data_frame_is_made_of_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    stand_in: Any = ModuleType("pandas")
    stand_in.DataFrame = lambda rows, columns: calls.append((rows, columns)) or "frame"
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    assert TABLE.to_pandas() == "frame"
    assert calls == [(ROWS, ["name", "size", "norm"])]


def test_without_pandas_there_is_no_data_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        TABLE.to_pandas()
    assert str(caught.value) == (
        "PlainTable.to_pandas: expected pandas to be installed: pip install 'dgrr[pandas]', or use to_dicts()"
    )


@pytest.mark.parametrize("text", ["w[a]", "[bold]x", "[/x]", ":smile:", "layer[red].w[/red]", "a\\[b]"])
def test_cells_are_shown_as_they_are(text: str) -> None:
    assert text in str(PlainTable("", ("name",), [{"name": text}]))


def test_any_name_of_a_node_can_be_shown() -> None:
    tape: Tape[Any] = Tape()
    w = tape.param(np.ones(2), name="w[/x]")
    assert "w[/x]" in str(tape.summary())
    assert "w[/x]" in str(tape.backward_dense(w.sum()).table())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.1 + 0.2, "0.3"),
        (123456.0, "1.235e+05"),
        (np.float64(2.5), "2.5"),
        (float("nan"), "nan"),
        (-0.0, "-0"),
        (123456, "123456"),
        (True, "True"),
        ((2, 3), "(2, 3)"),
        ("text", "text"),
        ("", ""),
    ],
)
def test_cells(value: Any, text: str) -> None:
    assert cell(value) == text


STATISTICS: list[tuple[list[float], dict[str, Any]]] = [
    ([3.0, -4.0, 0.0, -0.0], {"norm": 5.0, "min": -4.0, "max": 3.0, "zeros": 2, "non-finite": 0}),
    ([np.nan, 2.0, np.inf, -np.inf], {"norm": 2.0, "min": 2.0, "max": 2.0, "zeros": 0, "non-finite": 3}),
    ([np.nan, np.nan], {"norm": 0.0, "min": None, "max": None, "zeros": 0, "non-finite": 2}),
    ([], {"norm": 0.0, "min": None, "max": None, "zeros": 0, "non-finite": 0}),
    ([0.0], {"norm": 0.0, "min": 0.0, "max": 0.0, "zeros": 1, "non-finite": 0}),
    ([3e200, 4e200], {"norm": 5e200, "min": 3e200, "max": 4e200, "zeros": 0, "non-finite": 0}),
    ([3e-200, -4e-200], {"norm": 5e-200, "min": -4e-200, "max": 3e-200, "zeros": 0, "non-finite": 0}),
]


@pytest.mark.parametrize(("values", "expected"), STATISTICS)
def test_statistics(values: list[float], expected: dict[str, Any]) -> None:
    found = statistics(np.array(values))
    assert found.pop("norm") == pytest.approx(expected["norm"], rel=1e-15)
    assert found == {name: value for name, value in expected.items() if name != "norm"}


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_statistics_of_other_dtypes_are_taken_in_float64(dtype: Any) -> None:
    found = statistics(np.array([[1, 0], [1, 1]], dtype))
    assert found == {"norm": pytest.approx(3**0.5, rel=1e-15), "min": 0.0, "max": 1.0, "zeros": 1, "non-finite": 0}
