"""The charts of a page: which there are, how they look, and how a map shows more than it has columns for."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.trace import write_report
from dgrr.trace.report.charts.heat import (
    FIRST,
    MOST_BINS,
    ZERO as GREY,
    Cells,
    _mark,  # pyright: ignore[reportPrivateUsage]
    bins,
    marks,
    picture,
    pooled,
    scale,
)

from .conftest import Page


def rates(folder: Path, name: str, rule: Any, more: list[Path] | None = None) -> list[dict[str, Any]]:
    """The charts of the section of rates, of a run by these rules."""
    trainer = Trainer(lambda p, x: (p["0.weight"] * x + p["0.bias"]).sum(), dict(WEIGHTS), rule, trace=folder / name)
    trainer.fit([np.ones(2)], steps=3)
    write_report([folder / name, *(more or [])], folder / "rates.html")
    charts: list[dict[str, Any]] = Page(folder / "rates.html").data["charts"]["rates"]["charts"]
    return charts


WEIGHTS = {"0.weight": np.ones(2), "0.bias": np.ones(2)}


def test_groups_are_named_by_what_their_names_share(folder: Path) -> None:
    charts = rates(folder, "apart.dgrr", {"*.bias": SGD(0.1), "*": SGD(0.2)})
    assert [chart["title"] for chart in charts] == [
        "learning rate (lr) of 0.bias",
        "learning rate (lr) of 0.weight",
        "norm of all gradients",
    ]


def test_equal_charts_are_one(folder: Path) -> None:
    charts = rates(folder, "alike.dgrr", {"*.bias": SGD(0.1), "*": SGD(0.1)})
    assert [chart["title"] for chart in charts] == ["learning rate (lr)", "norm of all gradients"]


def test_each_line_has_the_label_the_colour_and_the_dashes_of_its_run(both: Page, digits: Path, folder: Path) -> None:
    first, second = both.data["charts"]["loss"]["lines"]
    assert (first["label"], second["label"]) == ("A · digits.dgrr", "B · other.dgrr")
    assert first["dash"] != second["dash"] and first["colour"] != second["colour"]
    (gap,) = both.data["charts"]["gaps"]
    assert [(line["label"], line["dash"]) for line in gap["lines"]] == [("|A − B|", second["dash"])]
    write_report([digits, digits, folder / "other.dgrr"], folder / "three.html")
    same, other = Page(folder / "three.html").data["charts"]["gaps"]
    assert same is None and other["lines"][0]["label"] == "|A − C|"


def test_the_scale_of_a_map_is_that_of_most_of_it() -> None:
    rng = np.random.default_rng(0)
    rows = np.exp(rng.standard_normal((1000, 20)))
    low, high = scale(rows)
    assert np.percentile(rows, [2, 98]) == pytest.approx((low, high), rel=1e-6)  # between elements by logarithms
    rows[:, 3] = 1e-18  # zero by mathematics, and by rounding not quite
    rows[:, 5] = 0
    rows[7, 7] = 1e9
    rows[8, 8] = np.inf
    assert scale(rows) == pytest.approx((low, high), rel=0.1)
    assert scale(np.zeros((3, 2))) == (0.1, 10.0)


def test_marks_of_a_row_stand_apart() -> None:
    """A sixtieth of the width, so that they can be told from one another."""
    drawn = list[tuple[list[float], list[float]]]()
    plot: Any = SimpleNamespace(scatter=lambda xs, ys, **look: drawn.append((xs, ys)))
    _mark(plot, np.ones((2, 600), bool), 1200, "circle")
    xs, ys = drawn[0]
    assert ys == [0.5] * 60 + [1.5] * 60
    assert xs[:3] == [1.0, 21.0, 41.0] and set(np.diff(xs[:60])) == {20.0}


def test_steps_that_share_a_column_of_a_map_show_the_greatest_and_every_mark() -> None:
    rows = np.ones((10_000, 2))
    rows[5003, 1], rows[2001, 0], rows[7777, 1] = 500, 0, np.inf
    found = marks(rows, np.array([100.0, 100.0]))
    place = bins(range(10_000), 10_000)
    assert place.max() == MOST_BINS - 1 and (np.bincount(place) == 10).all()
    for cells, step, row in ((found.exploding, 5003, 1), (found.dead, 2001, 0), (found.broken, 7777, 1)):
        assert np.argwhere(pooled(cells, place)).tolist() == [[row, step // 10]]
    assert pooled(rows, place)[1, 500] == 500


def test_what_is_not_known_is_empty_in_a_map() -> None:
    rows = np.array([[1.0, 0.0], [np.nan, np.nan], [10.0, 100.0], [1.0, 1.0]])
    shown = picture(Cells([0, 3, 6, 9], 10, ["a", "b"], rows, marks(rows)), (1.0, 100.0))
    assert shown.tolist() == [[FIRST, 0, FIRST + 126, FIRST], [GREY, 0, FIRST + 251, FIRST]]
    apart = picture(Cells([0, 1, 2, 9], 10, ["a", "b"], rows, marks(rows)), (1.0, 100.0))
    assert apart[:, 1].tolist() == apart[:, 0].tolist()  # of a step between two that are kept the one before stands


def test_without_bokeh_it_is_said_what_to_install(digits: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(ModuleNotFoundError, match=r"^write_report: expected bokeh .*: pip install 'dgrr\[report\]'$"):
        write_report([digits], folder / "none.html")
    assert not (folder / "none.html").exists()
