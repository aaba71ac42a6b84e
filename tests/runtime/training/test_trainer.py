"""`Trainer.fit` and `Trainer.evaluate`: how many steps, on which batches, with which bits."""

from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import Adam, Dataset, NonFiniteError, Trainer, gradients, state_digest
from dgrr.tape import DomainError, get_threads, ops, set_threads
from dgrr.tape.numerics.engine import launch

pytestmark = pytest.mark.quick

Array = npt.NDArray[Any]
Batch = tuple[Array, Array]


def start() -> dict[str, Array]:
    return {"w": np.array([[0.5, -0.25, 1.0]]), "b": np.array([0.125])}


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, targets = batch
    return ops.mse_loss(ops.linear(inputs, p["w"], p["b"]), targets)


def batch_of(number: int) -> Batch:
    rng = np.random.default_rng(number)
    return rng.standard_normal((4, 3)), rng.standard_normal((4, 1))


THREE = [batch_of(k) for k in range(3)]


def new_trainer() -> Trainer:
    return Trainer(loss_fn, start(), Adam(0.05))


class Counted:
    """Batches that count what is taken from them."""

    def __init__(self, batches: list[Batch]) -> None:
        self.batches, self.epochs, self.taken = batches, 0, 0

    def __iter__(self) -> Iterator[Batch]:
        self.epochs += 1
        assert self.epochs <= 5, "more epochs than any test asks for"
        for batch in self.batches:
            self.taken += 1
            yield batch


def independent(batches: Iterable[Any]) -> tuple[list[float], str]:
    """The losses and the digest of plain steps, one batch after the other."""
    rule, params = Adam(0.05), start()
    state, losses = rule.init(params), list[float]()
    for batch in batches:
        loss, grads = gradients(loss_fn, params, batch)
        rule.step(params, grads, state)
        losses.append(loss.item())
    return losses, state_digest(params, state)


# How many steps, on which batches.

COUNTS = [
    (None, None, 3, 1),
    (1, None, 1, 1),
    (3, None, 3, 1),
    (7, None, 7, 3),
    (None, 1, 3, 1),
    (None, 4, 12, 4),
    (5, 2, 5, 2),
    (6, 2, 6, 2),
    (9, 2, 6, 2),
    (0, None, 0, 0),
    (None, 0, 0, 0),
    (0, 5, 0, 0),
    (5, 0, 0, 0),
]


@pytest.mark.parametrize(("steps", "epochs", "expected", "iterated"), COUNTS)
def test_steps_and_epochs(steps: int | None, epochs: int | None, expected: int, iterated: int) -> None:
    batches, trainer = Counted(THREE), new_trainer()
    result = trainer.fit(batches, steps=steps, epochs=epochs)
    assert (result.steps, len(result.losses), trainer.steps) == (expected, expected, expected)
    assert (batches.taken, batches.epochs) == (expected, iterated)
    losses, digest = independent(THREE[k % 3] for k in range(expected))
    assert result.losses.tolist() == losses
    assert result.state_digest == digest


def test_a_one_shot_iterator_serves_one_epoch() -> None:
    result = new_trainer().fit(iter(THREE))
    assert result.losses.tolist() == independent(THREE)[0]
    assert new_trainer().fit(iter(THREE), steps=2).steps == 2
    assert new_trainer().fit(iter(THREE), steps=3).steps == 3


NONE_LEFT = (
    "fit: argument 'batches': expected at least one batch per epoch, got none; "
    "an iterator is used up after one epoch, so pass something that can be iterated again"
)


@pytest.mark.parametrize("counts", [{"epochs": 2}, {"steps": 4}])
def test_a_one_shot_iterator_that_is_used_up(counts: dict[str, Any]) -> None:
    trainer = new_trainer()
    with pytest.raises(DomainError) as caught:
        trainer.fit(iter(THREE), **counts)
    assert str(caught.value) == NONE_LEFT
    assert trainer.steps == 3
    assert state_digest(trainer.params, trainer.state) == independent(THREE)[1]


@pytest.mark.parametrize("counts", [{}, {"epochs": 2}, {"steps": 1}])
def test_no_batches(counts: dict[str, Any]) -> None:
    trainer = new_trainer()
    with pytest.raises(DomainError) as caught:
        trainer.fit([], **counts)
    assert str(caught.value) == NONE_LEFT
    assert trainer.steps == 0
    assert trainer.fit([], steps=0).steps == trainer.fit([], epochs=0).steps == 0


@pytest.mark.parametrize("name", ["steps", "epochs"])
def test_a_negative_count_takes_no_batch(name: str) -> None:
    batches = Counted(THREE)
    counts: dict[str, Any] = {name: -1}
    with pytest.raises(DomainError) as caught:
        new_trainer().fit(batches, **counts)
    assert str(caught.value) == f"fit: argument {name!r}: expected at least 0, got -1"
    assert batches.epochs == 0


def test_batches_may_be_dicts() -> None:
    def by_name(p: Any, batch: Any) -> Any:
        return loss_fn(p, (batch["inputs"], batch["targets"]))

    trainer = Trainer(by_name, start(), Adam(0.05))
    result = trainer.fit([{"targets": t, "inputs": x} for x, t in THREE], epochs=2)
    assert result.losses.tolist() == independent(THREE * 2)[0]


# What a fit leaves behind.


def test_the_result_describes_the_run() -> None:
    trainer = new_trainer()
    began = perf_counter()
    result = trainer.fit(THREE, epochs=2)
    assert 0 < result.seconds < perf_counter() - began
    assert result.losses.dtype == np.float64
    assert result.losses.shape == (6,)
    x, t = THREE[0]
    first = np.mean((x @ start()["w"].T + start()["b"] - t) ** 2)
    assert result.losses[0] == pytest.approx(first, rel=1e-14)
    assert result.state_digest == state_digest(trainer.params, trainer.state)


def test_losses_have_the_dtype_of_the_loss() -> None:
    params = {name: value.astype(np.float32) for name, value in start().items()}
    batches = [(x.astype(np.float32), t.astype(np.float32)) for x, t in THREE]
    assert Trainer(loss_fn, params, Adam()).fit(batches).losses.dtype == np.float32


def test_the_callers_parameters_are_not_changed() -> None:
    params = start()
    trainer = Trainer(loss_fn, params, Adam(0.05))
    trainer.fit(THREE)
    for name, value in start().items():
        assert np.array_equal(params[name], value)
        assert not np.array_equal(trainer.params[name], value)
        assert not np.shares_memory(params[name], trainer.params[name])


def test_fits_add_up() -> None:
    trainer = new_trainer()
    losses = [*trainer.fit(THREE).losses, *trainer.fit(THREE[:2]).losses]
    again = [*THREE, *THREE[:2]]
    assert trainer.steps == 5
    assert losses == independent(again)[0]
    assert state_digest(trainer.params, trainer.state) == independent(again)[1]


def test_a_non_finite_step_is_not_applied() -> None:
    trainer = new_trainer()
    x, t = batch_of(3)
    x[2, 1] = np.inf
    with pytest.raises(NonFiniteError) as caught:
        trainer.fit([*THREE, (x, t), batch_of(4)])
    text = str(caught.value)
    assert text.startswith("fit: step 3: the first non-finite value is node 2 (leaf), shape (4, 3), at ")
    assert text.endswith("; 1 inf of 12 elements; lower the learning rate or look at the batch")
    assert trainer.steps == 3
    assert state_digest(trainer.params, trainer.state) == independent(THREE)[1]
    assert trainer.fit([batch_of(4)]).losses.tolist() == independent([*THREE, batch_of(4)])[0][3:]


def test_a_run_that_diverges_names_the_step() -> None:
    trainer = Trainer(loss_fn, start(), Adam(1e200))
    with pytest.raises(NonFiniteError, match=r"^fit: step 1: the first non-finite value is node \d+ \(mse_loss\)"):
        trainer.fit(THREE)
    assert trainer.steps == 1


@pytest.fixture
def _split_everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make any amount of work worth several threads, and restore the number of threads."""
    threads = get_threads()
    monkeypatch.setattr(launch, "PARALLEL_WORK", 1)
    yield
    set_threads(threads)


@pytest.mark.usefixtures("_split_everything")
def test_bits_do_not_depend_on_threads() -> None:
    runs = set[tuple[bytes, str]]()
    for threads in (1, 2, 7):
        set_threads(threads)
        result = new_trainer().fit(THREE, epochs=3)
        runs.add((result.losses.tobytes(), result.state_digest))
    assert len(runs) == 1


def test_the_recording_mode_is_checked_at_once() -> None:
    with pytest.raises(DomainError) as caught:
        Trainer(loss_fn, start(), Adam(), record="some")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == "Trainer: argument 'record': expected 'digest', 'grads', 'full' or 'bare', got 'some'"


# Evaluation.

MANY = Dataset(*(np.concatenate([batch_of(k)[i] for k in range(75)]) for i in range(2)))
"""300 samples: one whole evaluation batch and a shorter one."""


def test_the_mean_loss_weighs_every_sample_alike() -> None:
    trainer = new_trainer()
    digest = state_digest(trainer.params, trainer.state)
    x, t = MANY.arrays
    errors = x @ start()["w"].T + start()["b"] - t
    assert trainer.evaluate(MANY) == pytest.approx(np.mean(errors**2), rel=1e-13)
    assert state_digest(trainer.params, trainer.state) == digest
    assert trainer.steps == 0


def test_accuracy_is_the_share_of_right_labels() -> None:
    params = {"shift": np.array([0.0, 0.0, 10.0])}
    trainer = Trainer(lambda p, batch: p["shift"].sum(), params, Adam())
    scores, labels = np.zeros((300, 3)), np.full(300, 2)
    labels[:87] = 0
    scores[:40, 0] = 20.0
    samples = Dataset(scores, labels)
    accuracy = trainer.evaluate(samples, metric="accuracy", model=lambda p, x: x + p["shift"])
    assert accuracy == pytest.approx((213 + 40) / 300, rel=1e-15)


def test_evaluation_uses_the_trained_parameters() -> None:
    trainer = new_trainer()
    before = trainer.evaluate(MANY)
    trainer.fit(MANY.batches(50), epochs=30)
    assert trainer.evaluate(MANY) < before


def test_arguments_of_evaluate() -> None:
    trainer = new_trainer()
    with pytest.raises(DomainError) as caught:
        trainer.evaluate(MANY, metric="f1")
    assert (
        str(caught.value) == "evaluate: argument 'metric': expected one of 'loss', 'accuracy', or a function, got 'f1'"
    )
    with pytest.raises(DomainError) as caught:
        trainer.evaluate(MANY, metric="accuracy")
    assert str(caught.value) == "evaluate: argument 'model': expected model(p, x) for 'accuracy', got None"
    with pytest.raises(DomainError) as caught:
        trainer.evaluate(Dataset(np.zeros(3)), metric="accuracy", model=lambda p, x: x)
    assert str(caught.value) == "evaluate: argument 'data': expected inputs and labels, got 1 arrays"
