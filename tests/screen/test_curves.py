"""Curves of characters: heights, gaps, scales, and terminals that have no dots."""

import io
import sys

import numpy as np
import pytest

from dgrr.screen.curves import Scale, plotted, sparkline


@pytest.fixture(autouse=True)
def utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))


def test_a_scale_is_logarithmic_where_the_numbers_are_far_apart() -> None:
    assert not Scale.of([1.0, 100.0]).logarithmic
    assert Scale.of([1.0, 1000.0]).height(10.0) == pytest.approx(1 / 3)
    assert not Scale.of([0.0, 1000.0]).logarithmic
    assert Scale.of([-1e308, 1e308]).height(0.0) == 0.5
    assert Scale.of([]).height(0.0) == 0.0
    assert [Scale(0.0, 1.0).character(x, "_#") for x in (None, 0.0, 1.0, np.nan, -np.inf)] == [" ", "_", "#", "!", "!"]


def test_a_line_has_means_of_what_does_not_fit() -> None:
    assert sparkline(np.repeat([1.0, 8.0, 3.0], 50), 3) == "▁█▃"
    assert sparkline([]) == ""
    assert sparkline([2.0, np.nan, 1.0]) == "█!▁"


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ([], []),
        ([3.0, 2.0, 1.0], ["3 ┤⠉⠓⠦⢤⣀", "1 ┤    ⠈⠙⠒⠦⣄", "   0       2"]),
        ([1.0], ["1 ┤", "1 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀", "   0"]),
        ([np.nan], ["0 ┤", "0 ┤", "   0", "(1 not finite, the first at 0)"]),
    ],
)
def test_a_curve_on_two_lines(values: list[float], lines: list[str]) -> None:
    assert plotted(values, width=12, height=2) == lines


def test_a_curve_fits_its_width_and_says_what_it_is() -> None:
    values = np.exp(-np.linspace(0, 9, 5000))
    values[4000:4010] = np.inf
    lines = plotted(values, width=80, height=6, first=100)
    assert max(map(len, lines)) <= 80
    assert [lines[0].split()[0], lines[5].split()[0]] == ["1", "0.0001234"]
    assert lines[6].split() == ["100", "5099"]
    assert lines[7] == "(a logarithmic scale; 10 not finite, the first at 4100)"


def test_a_spike_between_columns_is_seen() -> None:
    values = np.zeros(5000)
    values[2500] = 1.0
    top = plotted(values, width=60)[0]
    assert sum(character > "⠀" for character in top.split("┤")[1]) == 1


def test_a_curve_goes_on_behind_a_gap() -> None:
    row = plotted([1.0, 1.0, np.nan, np.nan, np.nan, 1.0, 1.0], width=22, height=1)[0].split("┤")[1]
    assert [len(part) for part in row.split()] == [4, 4]


def test_where_there_are_no_dots_there_are_stars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert plotted([3.0, 2.0, 1.0], width=12, height=2) == ["3 |*****", "1 |    *****", "   0       2"]
    assert sparkline([1.0, 2.0]) == "_#"
