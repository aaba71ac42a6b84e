"""Callbacks: when they are called, with what, and how they end a fit."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Callback, Result, Trainer
from dgrr.runtime.training.saving.checkpoint import read_checkpoint
from dgrr.tape import DomainError
from dgrr.trace import open_trace

BATCHES = [np.full(2, float(k)) for k in range(3)]


def loss_fn(p: Any, batch: Any) -> Any:
    return (batch * p["w"]).sum()


def new_trainer(*callbacks: Callback, **options: Any) -> Trainer:
    """With a learning rate of 0 the losses are 0, 2, 4, 0, 2, 4, …"""
    return Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.0), callbacks=callbacks, **options)


class Noted(Callback):
    """Writes down its calls; ends the fit at one of them."""

    def __init__(self, end: tuple[Any, ...] = ()) -> None:
        self.calls, self.end = list[tuple[Any, ...]](), end

    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool:
        assert type(loss) is float
        assert trainer.steps == step + 1
        return self.note("step", step, loss)

    def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> bool:
        return self.note("epoch", epoch, loss)

    def on_begin(self, trainer: Trainer, steps: int) -> None:
        self.note("begin", steps)

    def on_validation(self, trainer: Trainer, step: int, figures: Any) -> bool:
        return self.note("validation", step, figures["validation_loss"])

    def on_end(self, trainer: Trainer, result: Result) -> None:
        self.note("end", result.steps, result.losses.tolist())

    def note(self, *call: Any) -> bool:
        self.calls.append(call)
        return call[:2] == self.end


BEGIN = ("begin", 0)
FIRST = [BEGIN, ("step", 0, 0.0), ("step", 1, 2.0), ("step", 2, 4.0), ("epoch", 0, 4.0)]
SECOND = [("step", 3, 0.0), ("step", 4, 2.0), ("step", 5, 4.0), ("epoch", 1, 4.0)]


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_callbacks_are_told_of_every_step_and_epoch(mode: str) -> None:
    noted, again = Noted(), Noted()
    new_trainer(noted, again, mode=mode).fit(BATCHES, epochs=2)
    assert noted.calls == again.calls == [*FIRST, *SECOND, ("end", 6, [0.0, 2.0, 4.0] * 2)]


def test_an_epoch_that_is_cut_short_is_told_too() -> None:
    noted = Noted()
    new_trainer(noted).fit(BATCHES, steps=4)
    assert noted.calls == [*FIRST, ("step", 3, 0.0), ("epoch", 1, 0.0), ("end", 4, [0.0, 2.0, 4.0, 0.0])]


def test_a_fit_without_steps_has_only_an_end() -> None:
    noted = Noted()
    new_trainer(noted).fit(BATCHES, steps=0)
    assert noted.calls == [BEGIN, ("end", 0, [])]


STOPS: list[tuple[tuple[Any, ...], Sequence[tuple[Any, ...]]]] = [
    (("step", 1), [*FIRST[:3], ("epoch", 0, 2.0), ("end", 2, [0.0, 2.0])]),
    (("step", 2), [*FIRST, ("end", 3, [0.0, 2.0, 4.0])]),
    (("epoch", 0), [*FIRST, ("end", 3, [0.0, 2.0, 4.0])]),
]


@pytest.mark.parametrize(("end", "calls"), STOPS)
def test_true_ends_a_fit_in_good_order(tmp_path: Path, end: tuple[Any, ...], calls: Any) -> None:
    noted, after = Noted(end), Noted()
    path = tmp_path / "run.dgrr"
    trainer = new_trainer(noted, after, trace=path, checkpoint=tmp_path / "run.ckpt")
    result = trainer.fit(BATCHES, epochs=5)
    assert noted.calls == after.calls == calls
    assert trainer.steps == result.steps
    with open_trace(path) as trace:
        assert trace.sealed
        assert trace.loss.tolist() == result.losses.tolist()
    again = new_trainer(checkpoint=tmp_path / "run.ckpt", trace=path)
    again.load(tmp_path / "run.ckpt")
    assert again.fit(BATCHES, epochs=5).steps == 0


def test_every_checkpoint_knows_that_the_fit_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stopped, replace = tmp_path / "run.ckpt", list[Any](), os.replace

    def noted(source: Any, target: Any) -> None:
        replace(source, target)
        cursor = read_checkpoint(path).cursor
        stopped.append(cursor and cursor.stopped)

    monkeypatch.setattr(os, "replace", noted)
    new_trainer(Noted(("step", 1)), checkpoint=path, checkpoint_every=1).fit(BATCHES, epochs=5)
    assert stopped == [False, False, True, True]


class Failing(Callback):
    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
        if step == 1:
            raise ZeroDivisionError("mine")
        return None


def test_an_exception_passes_through_and_the_step_before_it_is_whole(tmp_path: Path) -> None:
    noted, path = Noted(), tmp_path / "run.dgrr"
    trainer = new_trainer(noted, Failing(), trace=path)
    with pytest.raises(ZeroDivisionError, match="mine"):
        trainer.fit(BATCHES)
    assert noted.calls == FIRST[:3]
    assert trainer.steps == 2
    with open_trace(f"{path}.partial", mode="tolerate_tail") as trace:
        assert trace.loss.tolist() == [0.0, 2.0]


def test_where_a_validation_stands() -> None:
    noted = Noted()
    new_trainer(noted).fit(BATCHES[1:], epochs=2, validation=[np.full(2, 5.0)])
    first = [("step", 0, 2.0), ("step", 1, 4.0), ("validation", 1, 10.0), ("epoch", 0, 4.0)]
    second = [("step", 2, 2.0), ("step", 3, 4.0), ("validation", 3, 10.0), ("epoch", 1, 4.0)]
    assert noted.calls == [BEGIN, *first, *second, ("end", 4, [2.0, 4.0] * 2)]
    noted = Noted()
    new_trainer(noted).fit(BATCHES[1:], validation=[np.full(2, 5.0)], validate_every=1)
    assert [call[0] for call in noted.calls] == ["begin", *["step", "validation"] * 2, "epoch", "end"]


def test_the_beginning_says_what_was_done_before(tmp_path: Path) -> None:
    noted = Noted(("step", 1))
    trainer = new_trainer(noted, checkpoint=tmp_path / "run.ckpt", checkpoint_every=1)
    trainer.fit(BATCHES)
    again = Noted()
    trainer = new_trainer(again)
    trainer.load(tmp_path / "run.ckpt")
    trainer.fit(BATCHES)
    assert again.calls[0] == ("begin", 2)


# What may be a callback.


def test_a_function_is_called_after_every_epoch() -> None:
    calls = list[Any]()

    def report(trainer: Trainer, epoch: int, loss: float) -> bool:
        calls.append((trainer.steps, epoch, loss))
        return epoch == 1

    Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.0), callbacks=[report]).fit(BATCHES, epochs=5)
    assert calls == [(3, 0, 4.0), (6, 1, 4.0)]
    Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.0), callbacks=[lambda *told: calls.append(told[1:])]).fit(BATCHES)
    assert calls[2:] == [(0, 4.0)]


def test_any_object_with_a_moment() -> None:
    class Steps:
        seen = 0

        def on_step(self, trainer: Trainer, step: int, loss: float) -> None:
            self.seen += 1

    steps = Steps()
    Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.0), callbacks=(steps,)).fit(BATCHES)
    assert steps.seen == 3


class Misspelt:
    def on_epoch_end(self) -> None: ...

    def __repr__(self) -> str:
        return "Misspelt()"


def two(trainer: Any, epoch: Any) -> None: ...


WHERE = "Trainer: argument 'callbacks': expected "
MOMENTS = (
    "an object with one of on_begin, on_step, on_validation, on_epoch, on_end, or a function of (trainer, epoch, loss)"
)
NOT: list[tuple[Any, str]] = [
    ([Misspelt()], f"{MOMENTS}, got Misspelt()"),
    ([None], f"{MOMENTS}, got None"),
    ([Noted], "an instance, got the class; write Noted(…)"),
    (Misspelt(), "a list of callbacks, got Misspelt(); write callbacks=[…]"),
    (
        [two],
        "a function of (trainer, epoch, loss), which is called after every epoch, got two(trainer: Any, epoch: Any) -> "
        "None; for other moments derive from Callback",
    ),
]


@pytest.mark.parametrize(("callbacks", "text"), NOT, ids=range(len(NOT)))
def test_what_is_no_callback_is_refused_at_once(callbacks: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.0), callbacks=callbacks)
    assert str(caught.value) == WHERE + text
