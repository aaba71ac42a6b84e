"""How a run shows itself: a bar on a terminal, plain lines elsewhere, or nothing."""

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dgrr.runtime import SGD, Dataset, Trainer
from dgrr.runtime.training import progress
from dgrr.runtime.training.progress import Lines, Silent, reporting
from dgrr.screen import showing
from dgrr.screen.showing import has_bar, rate

pytestmark = pytest.mark.quick

ESCAPE = "\x1b"


def console(terminal: bool, width: int = 100, **options: Any) -> tuple[Console, StringIO]:
    out = StringIO()
    return Console(
        file=out, force_terminal=terminal, width=width, color_system=None, legacy_windows=False, **options
    ), out  # fmt: skip


class Clock:
    """Time that passes by a quarter of a second between two looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "perf_counter", Clock())


EPOCHS = [{"loss": 1.875, "acc": 0.5}, {"loss": 0.62502, "acc": 0.75, "validation_loss": 0.8}]


def shown(wanted: bool | None, made: Console, total: int | None = 4, epochs: int | None = 2) -> None:
    """What four steps in two epochs write."""
    figures = dict[str, float]()
    with reporting(wanted, total, epochs, lambda: figures, made) as reporter:
        for number, ended in enumerate(EPOCHS):
            for loss in (0.5, 0.25):
                figures = {"loss": loss}
                reporter.steps(1)
            reporter.epoch(number, ended)


def written(wanted: bool | None, terminal: bool, width: int = 100, **options: Any) -> str:
    made, out = console(terminal, width)
    shown(wanted, made, **options)
    return out.getvalue()


def test_plain_lines_where_there_is_no_terminal() -> None:
    assert written(True, terminal=False) == (
        "epoch 1/2: step 2, loss 1.8750, acc 0.5000, 8 steps/s\n"
        "epoch 2/2: step 4, loss 0.6250, acc 0.7500, validation_loss 0.8000, 8 steps/s\n"
    )
    assert written(True, terminal=False, width=20, epochs=None).startswith("epoch 1/?: step 2, loss 1.8750, ")


@pytest.mark.parametrize(("wanted", "terminal"), [(None, False), (False, False), (False, True)])
def test_silence(wanted: bool | None, terminal: bool) -> None:
    assert written(wanted, terminal) == ""


@pytest.mark.parametrize("wanted", [None, True])
def test_a_bar_on_a_terminal(wanted: bool | None) -> None:
    text = written(wanted, terminal=True, width=140)
    assert "epoch 1/2" in text
    last = text.rpartition("epoch 2/2")[2]
    for part in ("━", "4/4", "0:00:00", "steps/s", "loss 0.6250", "acc 0.7500", "validation_loss 0.8000"):
        assert part in last
    assert ESCAPE in text


def test_between_epochs_the_bar_shows_the_running_means() -> None:
    made, out = console(True)
    with reporting(None, 4, None, lambda: {"loss": 0.125}, made) as reporter:
        reporter.steps(1)
        reporter.steps(1)
        reporter.steps(1)
    last = out.getvalue().rpartition("epoch 1/?")[2]
    assert "3/4" in last
    assert "loss 0.1250" in last


def test_the_figures_are_read_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = [0.0], list[float]()
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
    made, _ = console(True)

    def look() -> dict[str, float]:
        looks.append(now[0])
        return {}

    with reporting(None, None, None, look, made) as reporter:
        for _ in range(1000):
            now[0] += 1 / 64
            reporter.steps(1)
    assert len(looks) == 1 + 999 // 7  # the first step, and then every seventh, after 7/64 of a second


def test_a_narrow_terminal_loses_no_figure() -> None:
    text = written(None, terminal=True, width=60).rpartition("epoch 2/2")[2]
    assert "4/4" in text
    assert [word for word in text.split() if word in ("loss", "0.6250", "acc", "0.7500", "validation_loss", "0.8000")]
    assert "…" not in text


def test_a_bar_of_unknown_length_counts_steps() -> None:
    assert "4/?" in written(None, terminal=True, total=None)


@pytest.mark.parametrize(("widgets", "bar"), [(None, False), (object(), True)])
def test_a_notebook_has_a_bar_if_it_can_draw_one(monkeypatch: pytest.MonkeyPatch, widgets: Any, bar: bool) -> None:
    monkeypatch.setattr(showing, "find_spec", lambda name: widgets if name == "ipywidgets" else None)
    notebook = Console(force_jupyter=True)
    assert has_bar(notebook) == bar
    if not bar:
        with reporting(None, 4, 2, dict, notebook) as reporter:
            assert isinstance(reporter, Lines)
        with reporting(False, 4, 2, dict, notebook) as reporter:
            assert isinstance(reporter, Silent)


@pytest.mark.parametrize("terminal", [False, True])
def test_an_error_ends_the_display_and_goes_on(terminal: bool) -> None:
    made, out = console(terminal)

    def interrupted() -> None:
        with reporting(True, 4, 1, dict, made) as reporter:
            reporter.steps(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    hide, show = f"{ESCAPE}[?25l", f"{ESCAPE}[?25h"
    assert out.getvalue().count(hide) == out.getvalue().count(show) == terminal


@pytest.mark.parametrize(
    ("steps", "seconds", "text"), [(0, 0, "0 steps/s"), (9, 4, "2.2 steps/s"), (12345, 1, "12,345 steps/s")]
)
def test_speeds(steps: int, seconds: float, text: str) -> None:
    assert rate(steps, seconds) == text


SAMPLES = Dataset(np.ones((6, 2)))


def mean_loss(p: Any, batch: Any) -> Any:
    return (batch[0] * p["w"]).sum() * (1 / len(batch[0]))


def fit(wanted: bool | None, **counts: int) -> None:
    """A loss of w·(1, 1) with a learning rate of 1/2 falls by 1 in each step."""
    trainer = Trainer(mean_loss, {"w": np.zeros(2)}, SGD(0.5))
    trainer.fit(SAMPLES.batches(2), progress=wanted, **counts)


FITS = [
    ({}, ["epoch 1/1: step 3, loss -1.0000"]),
    ({"epochs": 2}, ["epoch 1/2: step 3, loss -1.0000", "epoch 2/2: step 6, loss -4.0000"]),
    ({"steps": 3}, ["epoch 1/?: step 3, loss -1.0000"]),
    ({"steps": 4}, ["epoch 1/?: step 3, loss -1.0000", "epoch 2/?: step 4, loss -3.0000"]),
    ({"steps": 0}, []),
]


@pytest.mark.parametrize(("counts", "lines"), FITS)
def test_fit_prints_a_line_per_epoch_and_for_a_last_one_cut_short(
    capsys: pytest.CaptureFixture[str], counts: dict[str, int], lines: list[str]
) -> None:
    fit(True, **counts)
    out, err = capsys.readouterr()
    assert ([line.rpartition(", ")[0] for line in out.splitlines()], err) == (lines, "")


@pytest.mark.parametrize("wanted", [None, False])
def test_fit_is_silent_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], wanted: bool | None) -> None:
    fit(wanted, epochs=2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("counts", "count"),
    [({}, "3/3"), ({"epochs": 2}, "6/6"), ({"steps": 4}, "4/4"), ({"steps": 9, "epochs": 2}, "6/6")],
)
def test_fit_shows_a_bar_with_the_number_of_steps_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, counts: dict[str, int], count: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    fit(None, **counts)
    assert count in capsys.readouterr().out


def test_an_epoch_that_is_told_once_more_has_no_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    Trainer(mean_loss, {"w": np.zeros(2)}, SGD(0.5), checkpoint=path).fit(SAMPLES.batches(2), progress=False)
    trainer = Trainer(mean_loss, {"w": np.zeros(2)}, SGD(0.5), checkpoint=path)
    trainer.load(path)
    trainer.fit(SAMPLES.batches(2), epochs=2, progress=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("epoch 2/2: step 3, loss -4.0000, ")
