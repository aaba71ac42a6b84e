"""How a run shows itself: a bar on a terminal, plain lines elsewhere, or nothing."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dgrr.runtime import SGD, Dataset, Trainer
from dgrr.runtime.training.progress import reporting

ESCAPE = "\x1b"


def console(terminal: bool) -> tuple[Console, StringIO]:
    out = StringIO()
    return Console(file=out, force_terminal=terminal, width=100, color_system=None, legacy_windows=False), out


def shown(progress: bool | None, terminal: bool, total: int | None = 4) -> str:
    """What four steps in two epochs write."""
    made, out = console(terminal)
    with reporting(progress, total, made) as reporter:
        for number, losses in enumerate([(2.5, 1.25), (0.75, 0.50004)]):
            for loss in losses:
                reporter.step(loss)
            reporter.epoch(number, losses[-1])
    return out.getvalue()


def test_plain_lines_where_there_is_no_terminal() -> None:
    assert shown(True, terminal=False) == "epoch 1: step 2, loss 1.2500\nepoch 2: step 4, loss 0.5000\n"


@pytest.mark.parametrize(("progress", "terminal"), [(None, False), (False, False), (False, True)])
def test_silence(progress: bool | None, terminal: bool) -> None:
    assert shown(progress, terminal) == ""


@pytest.mark.parametrize("progress", [None, True])
def test_a_bar_on_a_terminal(progress: bool | None) -> None:
    text = shown(progress, terminal=True)
    last = text.rpartition("training")[2]
    assert "4/4" in last
    assert "loss 0.5000" in last
    assert "━" in last
    assert ESCAPE in text
    assert "epoch" not in text


def test_a_bar_of_unknown_length_counts_steps() -> None:
    assert "4/?" in shown(None, terminal=True, total=None)


@pytest.mark.parametrize("terminal", [False, True])
def test_an_error_ends_the_display_and_goes_on(terminal: bool) -> None:
    made, out = console(terminal)

    def interrupted() -> None:
        with reporting(True, 4, made) as reporter:
            reporter.step(1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    hide, show = f"{ESCAPE}[?25l", f"{ESCAPE}[?25h"
    assert out.getvalue().count(hide) == out.getvalue().count(show) == terminal


SAMPLES = Dataset(np.ones((6, 2)))


def mean_loss(p: Any, batch: Any) -> Any:
    return (batch[0] * p["w"]).sum() * (1 / len(batch[0]))


def fit(progress: bool | None, **counts: int) -> None:
    """A loss of w·(1, 1) with a learning rate of 1/2 falls by 1 in each step."""
    trainer = Trainer(mean_loss, {"w": np.zeros(2)}, SGD(0.5))
    trainer.fit(SAMPLES.batches(2), progress=progress, **counts)


FITS = [
    ({}, ["epoch 1: step 3, loss -2.0000"]),
    ({"epochs": 2}, ["epoch 1: step 3, loss -2.0000", "epoch 2: step 6, loss -5.0000"]),
    ({"steps": 3}, ["epoch 1: step 3, loss -2.0000"]),
    ({"steps": 4}, ["epoch 1: step 3, loss -2.0000", "epoch 2: step 4, loss -3.0000"]),
    ({"steps": 0}, []),
]


@pytest.mark.parametrize(("counts", "lines"), FITS)
def test_fit_prints_a_line_per_epoch_and_for_a_last_one_cut_short(
    capsys: pytest.CaptureFixture[str], counts: dict[str, int], lines: list[str]
) -> None:
    fit(True, **counts)
    out, err = capsys.readouterr()
    assert (out.splitlines(), err) == (lines, "")


@pytest.mark.parametrize("progress", [None, False])
def test_fit_is_silent_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], progress: bool | None) -> None:
    fit(progress, epochs=2)
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
