"""Early stopping and the best checkpoint: what they watch, when they act, and that a resume changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, BestCheckpoint, Callback, EarlyStopping, Trainer
from dgrr.tape import DomainError, ops

from .saving import DATA, EPOCHS, MODEL, loss_fn, new_trainer

LOSSES = [5.0, 4.0, 4.5, 3.0, 3.0, 2.9, 3.5, 3.6, 3.7, 1.0]


class Feigned:
    """Batches of an epoch each, whose loss is the next of a list."""

    def __init__(self, losses: list[float]) -> None:
        self.losses = losses
        self.epoch = 0

    def __iter__(self) -> Any:
        loss = self.losses[self.epoch % len(self.losses)]
        self.epoch += 1
        return iter([np.array([loss]), np.array([loss])])


def feigned(*callbacks: Any, losses: list[float] = LOSSES) -> Trainer:
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(1)}, SGD(0.0), callbacks=callbacks)
    trainer.fit(Feigned(losses), epochs=len(losses))
    return trainer


@pytest.mark.parametrize(
    ("options", "epochs", "best", "waited"),
    [
        ({"patience": 1}, 3, 1, 1),
        ({"patience": 2}, 8, 5, 2),
        ({"patience": 3}, 9, 5, 3),
        ({"patience": 4}, 10, 9, 0),
        ({"patience": 2, "min_delta": 0.5}, 6, 3, 2),
        ({"patience": 3, "min_delta": 1.5}, 7, 3, 3),
    ],
)
def test_a_fit_ends_when_its_loss_gets_no_better(options: Any, epochs: int, best: int, waited: int) -> None:
    stopping = EarlyStopping("loss", **options)
    trainer = feigned(stopping)
    assert trainer.steps == 2 * epochs
    assert (stopping.best, stopping.best_step, stopping.waited) == (LOSSES[best], 2 * best + 1, waited)


def test_the_greatest_may_be_the_best() -> None:
    stopping = EarlyStopping("loss", patience=2, mode="max")
    assert feigned(stopping, losses=[1.0, 2.0, 2.0, 1.5, 9.0]).steps == 8
    assert stopping.best == 2.0


def test_nan_is_never_better() -> None:
    def with_nan(p: Any, x: Any) -> Any:
        return (p["w"] * x).sum() * 0.0 + p["w"].sum(), {"figure": ops.log(x[0])}

    stopping = EarlyStopping("figure", patience=2)
    trainer = Trainer(with_nan, {"w": np.zeros(1)}, SGD(0.0), callbacks=[stopping])
    assert trainer.fit(Feigned([-1.0, 2.0, -1.0, -1.0, 1.0]), epochs=5).steps == 8
    assert stopping.best == pytest.approx(np.log(2.0))


def test_a_validation_is_watched_as_often_as_it_comes() -> None:
    stopping = EarlyStopping("validation_loss", patience=2, mode="max")
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(1)}, SGD(1.0), callbacks=[stopping])
    result = trainer.fit([np.ones(1)] * 9, validation=[np.ones(1)], validate_every=2)
    assert (stopping.best_step, result.steps) == (1, 6)  # the loss falls


def test_a_metric_of_the_validation_is_watched() -> None:
    stopping = EarlyStopping("validation_first", patience=1, mode="max")
    trainer = Trainer(
        lambda p, x: ((p["w"] * x).sum(), {"first": p["w"][0]}), {"w": np.ones(1)}, SGD(0.5), callbacks=[stopping]
    )
    trainer.fit([np.ones(1)], epochs=9, validation=[np.ones(1)])
    assert (stopping.best, trainer.steps) == (0.5, 2)


def test_a_second_fit_starts_afresh() -> None:
    stopping = EarlyStopping("loss", patience=2)
    trainer = feigned(stopping)
    first = trainer.steps
    assert trainer.fit(Feigned(LOSSES), epochs=10).steps == first


# What is refused.


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: EarlyStopping(patience=0),
            "EarlyStopping: argument 'patience': expected a whole number of at least 1, got 0",
        ),
        (lambda: EarlyStopping(mode="low"), "EarlyStopping: argument 'mode': expected 'min' or 'max', got 'low'"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        (
            lambda: BestCheckpoint("x", min_delta=-1.0),
            "BestCheckpoint: argument 'min_delta': expected a number of at least 0, got -1.0",
        ),
    ],
)  # fmt: skip
def test_arguments(make: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make()
    assert str(caught.value) == text


def test_a_figure_that_the_fit_does_not_have() -> None:
    with pytest.raises(DomainError) as caught:
        feigned(EarlyStopping())
    assert str(caught.value) == (
        "EarlyStopping: argument 'monitor': expected a figure of the fit, got 'validation_loss'; there is none of a "
        "validation; pass fit(…, validation=…) or monitor='loss'"
    )
    with pytest.raises(DomainError) as caught:
        feigned(EarlyStopping("acc"))
    assert str(caught.value) == (
        "EarlyStopping: argument 'monitor': expected a figure of the fit, got 'acc'; there is 'epoch', 'step', 'loss', "
        "'lr', 'seconds'"
    )


# Checkpoints.


class KillAfter(Callback):
    """Ends the run in bad order."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
        if step + 1 == self.step:
            raise InterruptedError
        return None


def batches() -> Any:
    return DATA.batches(6, seed=3)


@pytest.mark.parametrize("every", [None, 1, 3])
@pytest.mark.parametrize("saved_every", [1, 2, 4])
def test_a_resumed_fit_ends_where_the_whole_one_would_have(tmp_path: Path, every: int | None, saved_every: int) -> None:
    options: dict[str, Any] = {"epochs": 9, "validation": DATA.batches(7), "validate_every": every}

    def patient() -> EarlyStopping:
        return EarlyStopping(patience=2, min_delta=0.05)

    stopping = patient()
    whole = new_trainer(callbacks=[stopping]).fit(batches(), **options)
    assert 2 < whole.steps < 36
    for killed in range(1, whole.steps + 1):
        path = tmp_path / f"{killed}.ckpt"
        first = new_trainer(
            checkpoint=path,
            checkpoint_every=saved_every,
            callbacks=[EarlyStopping(patience=2, min_delta=0.05), KillAfter(killed)],
        )
        with pytest.raises(InterruptedError):
            first.fit(batches(), **options)
        again = patient()
        second = new_trainer(checkpoint=path, callbacks=[again])
        second.load(path)
        assert second.fit(batches(), **options).state_digest == whole.state_digest
        assert again.state_dict() == stopping.state_dict()


def test_a_run_that_is_made_longer_counts_no_epoch_twice(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    for epochs in range(1, 9):
        stopping = EarlyStopping(patience=2, min_delta=0.05)
        trainer = new_trainer(checkpoint=path, callbacks=[stopping])
        if path.exists():
            trainer.load(path)
        trainer.fit(batches(), epochs=epochs, validation=DATA)
    whole = EarlyStopping(patience=2, min_delta=0.05)
    new_trainer(callbacks=[whole]).fit(batches(), epochs=8, validation=DATA)
    assert stopping.state_dict() == whole.state_dict()


def test_the_best_checkpoint_is_the_best(tmp_path: Path) -> None:
    path = tmp_path / "best.ckpt"
    best = BestCheckpoint(path, monitor="validation_loss")
    digests = dict[int, str]()

    class Digests(Callback):
        def on_validation(self, trainer: Trainer, step: int, figures: Any) -> None:
            digests[step] = trainer.evaluate(DATA).hex()

    trainer = new_trainer(callbacks=[Digests(), best])
    history = trainer.fit(batches(), epochs=EPOCHS, validation=DATA, validate_every=1).history
    column = history["validation_loss"]
    assert best.best == np.nanmin(column)
    assert best.best_step == int(np.nanargmin(column))
    trainer.load(path)
    assert trainer.steps == best.best_step + 1
    assert trainer.evaluate(DATA).hex() == digests[best.best_step]
    assert list(tmp_path.iterdir()) == [path]


def test_two_of_a_kind_keep_their_own_state(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"

    def pair() -> list[EarlyStopping]:
        return [EarlyStopping("loss", patience=9), EarlyStopping("loss", patience=9, mode="max")]

    ones = pair()
    trainer = new_trainer(callbacks=[ones[0], KillAfter(99), ones[1]])
    trainer.fit(batches(), epochs=2)
    trainer.save(path)
    others = pair()
    new_trainer(callbacks=others).load(path)
    assert [c.state_dict() for c in others] == [c.state_dict() for c in ones]
    assert others[0].best != others[1].best
    new_trainer().load(path)  # without callbacks


class Unsaveable(Callback):
    def state_dict(self) -> Any:
        return {"a": MODEL}

    def load_state_dict(self, state: Any) -> None: ...


def test_a_state_that_no_checkpoint_holds(tmp_path: Path) -> None:
    trainer = Trainer(loss_fn, MODEL.init(0), SGD(0.1), callbacks=[Unsaveable()])
    with pytest.raises(DomainError) as caught:
        trainer.save(tmp_path / "x")
    assert str(caught.value) == (
        "save: callback Unsaveable: state_dict: expected what JSON holds, got Object of type Sequential is not JSON "
        "serializable"
    )
    assert list(tmp_path.iterdir()) == []
