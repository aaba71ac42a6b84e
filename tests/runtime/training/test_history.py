"""The history of a fit: what its tables hold, how they print, and what is written of them."""

import re
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dgrr.runtime import SGD, Adam, History, Trainer, gradients
from dgrr.runtime.optim import Cosine
from dgrr.tape import DomainError

BATCHES = [np.full(2, float(k)) for k in range(3)]


def loss_fn(p: Any, batch: Any) -> Any:
    loss = (batch * p["w"]).sum()
    return loss, {"twice": loss * 2, "first": batch[0]}


def new_trainer(rule: Any = None, **options: Any) -> Trainer:
    return Trainer(loss_fn, {"w": np.ones(2)}, rule or SGD(0.0), **options)


def fitted(**options: Any) -> History:
    """With a learning rate of 0 the losses are 0, 2, 4, 0, 2, 4, …"""
    return new_trainer().fit(BATCHES, **options).history


@pytest.mark.parametrize("mode", ["eager", "capture", "replay"])
def test_a_row_per_step(mode: Any) -> None:
    result = new_trainer(mode=mode).fit(BATCHES, epochs=2, validation=[np.full(2, 3.0)])
    history = result.history
    assert history.columns == (
        "step", "epoch", "loss", "lr", "twice", "first", "validation_loss", "validation_twice", "validation_first",
        "seconds",
    )  # fmt: skip
    assert len(history) == len(history.steps) == 6
    assert history["step"].tolist() == list(range(6))
    assert history["epoch"].tolist() == [0, 0, 0, 1, 1, 1]
    assert history["loss"].tolist() == result.losses.tolist() == [0, 2, 4] * 2
    assert history["twice"].tolist() == [0, 4, 8] * 2
    assert history["first"].tolist() == [0, 1, 2] * 2
    assert history["lr"].tolist() == [0.0] * 6
    assert np.isnan(history["validation_loss"]).tolist() == [True, True, False] * 2
    assert history["validation_loss"][2] == 6
    seconds = history["seconds"]
    assert seconds[0] > 0 and (np.diff(seconds) > 0).all() and seconds[-1] < result.seconds


def test_a_row_per_epoch_with_its_means() -> None:
    epochs = fitted(epochs=2, steps=5).epochs
    assert epochs.columns == ("epoch", "step", "loss", "lr", "twice", "first", "seconds")
    assert [epochs[name].tolist() for name in epochs.columns[:-1]] == [
        [0, 1], [2, 4], [2.0, 1.0], [0.0, 0.0], [4.0, 2.0], [1.0, 0.5],
    ]  # fmt: skip
    assert epochs.last()["loss"] == 1.0
    assert epochs["epoch"].dtype == epochs["step"].dtype == np.int64


def test_learning_rates_are_those_of_the_steps() -> None:
    rule = Adam(Cosine(0.5, steps=6))
    trainer = new_trainer(rule)
    first = trainer.fit(BATCHES).history
    second = trainer.fit(BATCHES).history
    expected = [rule.hyperparameters(k)["lr"] for k in range(1, 7)]
    assert [*first["lr"], *second["lr"]] == expected
    assert len(set(expected)) == 6
    assert second["step"].tolist() == [3, 4, 5]
    assert second.epochs["lr"].tolist() == expected[5:]


NORMS: list[tuple[dict[str, Any], dict[str, Any], list[float]]] = [
    ({}, {"gradient_norm": True}, [0.0, 2**0.5, 8**0.5]),
    ({"clip_norm": 0.5}, {}, [0.0, 2**0.5, 8**0.5]),
    ({"clip_value": 1.0}, {"gradient_norm": True}, [0.0, 2**0.5, 2**0.5]),
    ({"clip_value": 1.0, "clip_norm": 9.0}, {"gradient_norm": True}, [0.0, 2**0.5, 2**0.5]),
]


@pytest.mark.parametrize(("recipe", "options", "norms"), NORMS, ids=str)
@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_the_norm_of_the_gradients(mode: Any, recipe: Any, options: Any, norms: list[float]) -> None:
    result = new_trainer(mode=mode, warmup=1, **recipe).fit(BATCHES, **options)
    assert result.history["gradient_norm"] == pytest.approx(norms, rel=1e-15)
    assert result.history.epochs["gradient_norm"][0] == pytest.approx(sum(norms) / 3, rel=1e-15)
    without = new_trainer(mode=mode, warmup=1, **recipe).fit(BATCHES)
    assert result.state_digest == without.state_digest
    assert np.sqrt((gradients(lambda p, b: loss_fn(p, b)[0], {"w": np.ones(2)}, BATCHES[1])[1]["w"] ** 2).sum()) == (
        pytest.approx(2**0.5)
    )


def test_the_norm_is_not_measured_unasked() -> None:
    assert "gradient_norm" not in fitted().columns


def test_a_metric_that_comes_and_goes() -> None:
    def sometimes(p: Any, batch: Any) -> Any:
        loss = (batch * p["w"]).sum()
        return (loss, {"large": loss}) if loss.item() > 1 else loss

    history = Trainer(sometimes, {"w": np.ones(2)}, SGD(0.0), mode="eager").fit(BATCHES).history
    assert np.array_equal(history["large"], [np.nan, 2.0, 4.0], equal_nan=True)
    assert history.epochs["large"].tolist() == [3.0]


def test_a_fit_without_steps() -> None:
    history = fitted(steps=0)
    assert (len(history), len(history.epochs), history.epochs.last()) == (0, 0, {})
    assert history.columns == ("step", "epoch", "loss", "lr", "seconds")
    assert history["loss"].tolist() == history.epochs["loss"].tolist() == []
    assert "epoch" in str(history)


def test_the_history_of_the_fit_in_progress() -> None:
    seen: list[Any] = []

    class Look:
        def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> None:
            seen.append((len(trainer.history), trainer.history.last_epoch()["loss"]))

    new_trainer(callbacks=[Look()]).fit(BATCHES, epochs=2)
    assert seen == [(3, 2.0), (6, 2.0)]


def test_another_column() -> None:
    with pytest.raises(DomainError) as caught:
        _ = fitted()["acc"]
    assert str(caught.value) == (
        "history: expected a column among step, epoch, loss, lr, twice, first, seconds, got 'acc'"
    )


# Printing and writing.


def cells(text: str) -> list[list[str]]:
    """The cells of every line of a printed table."""
    lines = text.replace("┃", "│").splitlines()
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_it_prints_its_epochs() -> None:
    history = fitted(epochs=2)
    lines = cells(str(history))
    assert ["epoch", "step", "loss", "lr", "twice", "first", "seconds"] in lines
    assert ["1", "5", "2", "0", "4", "1"] in [line[:-1] for line in lines]
    assert repr(history) == "History(6 steps, 2 epochs)"
    out = StringIO()
    Console(width=120, file=out).print(history)
    assert cells(out.getvalue())[2] == lines[2]


def test_a_long_one_prints_its_last_rows() -> None:
    text = str(fitted(epochs=25))
    assert "epochs, the last 20 of 25" in text
    assert [line[0] for line in cells(text) if line[0].isdigit()] == [str(k) for k in range(5, 25)]


def test_a_notebook_shows_a_table() -> None:
    html = fitted(epochs=2)._repr_html_()
    assert "<strong>epochs</strong>" in html
    assert re.findall(r"<th [^>]*>(\w+)</th>", html)[:3] == ["epoch", "step", "loss"]
    assert html.count("<tr>") == 3
    assert re.findall(r"<td [^>]*>([^<]*)</td>", html)[7:10] == ["1", "5", "2"]


def test_comma_separated_values(tmp_path: Path) -> None:
    history = fitted(validation=[np.full(2, 0.1)])
    history.to_csv(tmp_path / "steps.csv")
    head, *rows = (tmp_path / "steps.csv").read_text().splitlines()
    assert head.split(",") == list(history.columns)
    assert [row.split(",")[:6] for row in rows] == [
        ["0", "0", "0.0", "0.0", "0.0", "0.0"], ["1", "0", "2.0", "0.0", "4.0", "1.0"],
        ["2", "0", "4.0", "0.0", "8.0", "2.0"],
    ]  # fmt: skip
    assert [row.split(",")[6] for row in rows] == ["", "", "0.2"]
    read = np.genfromtxt(tmp_path / "steps.csv", delimiter=",", names=True)
    assert read["seconds"].tolist() == history["seconds"].tolist()


def test_a_frame_is_made_of_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for pandas, whose DataFrame takes a dict of arrays by the names of columns."""
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    history = fitted(epochs=2)
    frame = history.to_pandas()
    assert list(frame) == list(history.columns)
    assert frame["loss"].tolist() == history["loss"].tolist()
    assert history.epochs.to_pandas()["epoch"].tolist() == [0, 1]


def test_pandas_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        fitted().to_pandas()
    assert str(caught.value) == (
        "history.to_pandas: expected pandas to be installed: pip install 'dgrr[pandas]', or use columns, or to_csv"
    )
