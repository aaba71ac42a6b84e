"""Trainers of several ranks: one run, whoever computes it - its data, trace, checkpoints, callbacks and figures."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.completed_step import CompletedStep
from dgrr.runtime import Adam, Dataset, Keep, Trainer
from dgrr.runtime.data import Epochs
from dgrr.runtime.training.callbacks.early_stopping import EarlyStopping
from dgrr.runtime.training.step_runner import StepMode
from dgrr.tape import DomainError, NonFiniteError, nn, ops
from dgrr.trace import open_trace, replay

from ..fake_ranks import FakeRank, run_ranks

RNG = np.random.default_rng(2)
M = 5
MODEL = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm(8), nn.Tanh(), nn.Dropout(0.25), nn.Linear(8, 2))
X, Y = RNG.standard_normal((67, 3)).astype(np.float32), RNG.integers(0, 2, 67)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """A model with a state and draws, and a metric."""
    logits = MODEL(p, batch[0], ctx)
    return ops.cross_entropy(logits, batch[1]), ctx.state, {"size": ops.reduce_mean(logits * logits)}


def batches() -> Any:
    """Two steps an epoch, and four batches left over, of which the last is smaller."""
    return Dataset(X, Y).batches(5, seed=1)


def new_trainer(ranks: FakeRank | None = None, **options: Any) -> Trainer:
    kept: dict[str, Any] = {"clip_norm": 0.25, "ema": 0.9, **options}
    kept |= {"model_state": MODEL.init_state(), "accumulate": M, "order": "tree", "seed": 9}
    return Trainer(loss_fn, MODEL.init(0), Adam(0.05), ranks=ranks, **kept)


def outcome(trainer: Trainer, result: Any) -> Any:
    """All that can be seen of a fit that does not depend on who computed it."""
    steps = trainer.history.steps
    figures = {name: repr(steps[name].tolist()) for name in steps.columns if name != "seconds"}
    assert {"loss", "size", "gradient_norm"} <= figures.keys()
    return result.state_digest, result.losses.tolist(), figures


def one_process(**options: Any) -> Any:
    trainer = new_trainer(**options)
    return outcome(trainer, trainer.fit(batches(), epochs=3))


def link_of(path: Path) -> tuple[bytes, int]:
    with open_trace(path) as trace:
        return trace[len(trace) - 1].link, len(trace)


@pytest.mark.parametrize(("size", "mode"), [(2, "replay"), (3, "eager"), (5, "replay"), (2, "capture")])
def test_a_run_of_ranks_is_that_of_one_process_and_so_is_its_trace(size: int, mode: StepMode, tmp_path: Path) -> None:
    alone, together = tmp_path / "alone.dgrr", tmp_path / "together.dgrr"
    expected = one_process(trace=alone)

    def run(rank: FakeRank) -> Any:
        trainer = new_trainer(rank, trace=together, mode=mode, warmup=2)
        return outcome(trainer, trainer.fit(batches(), epochs=3))

    assert run_ranks(size, run) == [expected] * size
    assert link_of(together) == link_of(alone)
    report = replay(together, loss_fn=loss_fn, batches=batches())
    assert report.ok and (report.update, report.gradient, report.data) == ("proven",) * 3, report


class Counted(Epochs[Any]):
    """Batches that know which of them were made."""

    def __init__(self) -> None:
        self.made = list[tuple[int, int]]()

    def epoch(self, k: int) -> Iterator[Any]:
        return self._of(k, range(13))

    def picked(self, k: int, wanted: Callable[[int], bool]) -> Iterator[Any]:
        return self._of(k, filter(wanted, range(13)))

    def __len__(self) -> int:
        return 13

    def _of(self, k: int, numbers: Any) -> Iterator[Any]:
        for number in numbers:
            self.made.append((k, number))
            yield X[number : number + 2] + np.float32(k), Y[number : number + 2]


def test_each_rank_makes_its_own_batches_alone_and_none_is_made_twice() -> None:
    def run(rank: FakeRank) -> list[tuple[int, int]]:
        data = Counted()
        new_trainer(rank).fit(data, epochs=2)
        return data.made

    assert run_ranks(2, run) == [
        [(k, i) for k in range(2) for i in (0, 1, 5, 6)],
        [(k, i) for k in range(2) for i in (2, 3, 4, 7, 8, 9)],
    ]


KINDS: dict[str, Callable[[], Any]] = {
    "epochs": batches,
    "prefetched": lambda: batches().prefetch(2),
    "a list": lambda: list(batches()),
    "an iterator": lambda: iter([*batches(), *batches()]),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_batches_of_every_kind_give_the_same_run(make: Callable[[], Any]) -> None:
    one = new_trainer()
    expected = outcome(one, one.fit(make()))

    def run(rank: FakeRank) -> Any:
        trainer = new_trainer(rank)
        return outcome(trainer, trainer.fit(make()))

    assert run_ranks(2, run) == [expected] * 2


@pytest.mark.parametrize(("first", "then"), [(3, 2), (2, None), (None, 4)])
def test_a_run_goes_on_from_its_checkpoint_on_another_number_of_ranks(
    first: int | None, then: int | None, tmp_path: Path
) -> None:
    expected = one_process(trace=tmp_path / "whole.dgrr")
    place, trace = tmp_path / "run.ckpt", tmp_path / "run.dgrr"

    def broken(trainer: Trainer, step: int, loss: float) -> None:
        if step == 3:
            raise KeyboardInterrupt

    def begin(rank: FakeRank | None) -> None:
        breaks = type("Breaks", (), {"on_step": staticmethod(broken)})()
        trainer = new_trainer(rank, trace=trace, checkpoint=place, checkpoint_every=3, callbacks=[breaks])
        with pytest.raises(KeyboardInterrupt):
            trainer.fit(batches(), epochs=3)

    def go_on(rank: FakeRank | None) -> Any:
        trainer = new_trainer(rank, trace=trace, checkpoint=place)
        trainer.load(place)
        return trainer.fit(batches(), epochs=3).state_digest

    on(first, begin)
    assert set(on(then, go_on)) == {expected[0]}
    assert link_of(trace) == link_of(tmp_path / "whole.dgrr")


def on(size: int | None, run: Callable[[FakeRank | None], Any]) -> list[Any]:
    return [run(None)] if size is None else run_ranks(size, run)


def test_validation_callbacks_and_progress_are_the_same_on_all_ranks_and_shown_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(rank: FakeRank | None) -> Any:
        trainer = new_trainer(rank, callbacks=[EarlyStopping(patience=1, min_delta=10.0)])
        result = trainer.fit(batches(), epochs=6, validation=[(X[:7], Y[:7])], progress=True)
        return outcome(trainer, result), trainer.history["validation_loss"].tolist()[1::2], len(result.losses)

    (expected,) = on(None, run)
    shown = capsys.readouterr().out
    assert expected[2] < 12, "it stopped early"
    assert on(3, run) == [expected] * 3
    assert len(capsys.readouterr().out.splitlines()) == len(shown.splitlines()) > 0


def test_averages_are_gathered_and_figures_of_them_refused() -> None:
    one = new_trainer()
    one.fit(batches())

    def run(rank: FakeRank) -> Any:
        trainer = new_trainer(rank)
        trainer.fit(batches())
        with pytest.raises(DomainError, match="^averages: expected a trainer without ranks"):
            trainer.evaluate([(X, Y)], averages=True)
        figure = trainer.evaluate([(X, Y)])
        return {name: array.tobytes() for name, array in trainer.averaged.items()}, figure

    expected = {name: array.tobytes() for name, array in one.averaged.items()}, one.evaluate([(X, Y)])
    assert run_ranks(2, run) == [expected] * 2


def test_a_norm_is_measured_where_nothing_is_clipped() -> None:
    one = new_trainer(clip_norm=None)
    one.fit(batches(), gradient_norm=True)

    def run(rank: FakeRank) -> Any:
        trainer = new_trainer(rank, clip_norm=None)
        trainer.fit(batches(), gradient_norm=True)
        return trainer.history["gradient_norm"].tolist()

    assert run_ranks(3, run) == [one.history["gradient_norm"].tolist()] * 3


def test_a_value_that_is_not_finite_ends_all_ranks_and_seals_the_trace(tmp_path: Path) -> None:
    data = [(X[i : i + 5], Y[i : i + 5]) for i in range(0, 50, 5)]
    data[8] = (data[8][0] * np.float32(np.inf), data[8][1])

    def run(rank: FakeRank) -> None:
        with pytest.raises(NonFiniteError, match="^fit: step 1: "):
            new_trainer(rank, trace=tmp_path / "run.dgrr").fit(data)

    run_ranks(2, run)
    assert link_of(tmp_path / "run.dgrr")[1] == 1


def test_what_are_no_ranks_is_refused() -> None:
    with pytest.raises(DomainError) as error:
        new_trainer(4)  # type: ignore[arg-type]
    assert str(error.value) == (
        "Trainer: argument 'ranks': expected what dgrr.runtime.ranks.init() returns, or None, got 4"
    )


def test_what_ranks_cannot_do_is_refused() -> None:
    with pytest.raises(DomainError) as error:
        new_trainer(FakeRank.alone(), trace=Keep("t", ops="first"))
    assert str(error.value) == (
        "Trainer: argument 'trace': expected a Keep without 'ops' with ranks, of which none has all values of a step, "
        "got ops='first'; replay the trace in one process to see them"
    )


class WantsTapes:
    """A recorder that asks for every value of every step."""

    def wants_tape(self, step: int) -> bool:
        return True

    def step(self, done: CompletedStep) -> None: ...

    def commit(self) -> None: ...

    def seal(self) -> None: ...

    def close(self) -> None: ...


def test_tapes_for_a_recorder_of_ones_own_are_refused() -> None:
    with pytest.raises(DomainError) as error:
        new_trainer(FakeRank.alone(), trace=WantsTapes()).fit(batches())
    assert str(error.value) == (
        "fit: argument 'trace': expected a recorder that wants no tapes with ranks, of which none has all values of a "
        "step; replay the trace in one process to see them"
    )
