"""Checkpoints: a run goes on to the bit from every one of them, and so does its trace."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dgrr.runtime import Callback, Stream, Trainer, state_digest
from dgrr.runtime.data import SampleRandom
from dgrr.runtime.training.saving import checkpoint
from dgrr.trace import open_trace

from .saving import DATA, EPOCHS, SaveAt, new_trainer


class Epochs:
    """Not a `Batches`: counts its epochs as it goes, in the body of a generator."""

    def __init__(self) -> None:
        self.epoch = 0

    def __iter__(self) -> Iterator[Any]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        yield from DATA.batches(6, seed=3).epoch(epoch)


def noisy(x: Any, label: Any, random: SampleRandom) -> Any:
    return x + random.normal(x.shape), label


MAKERS: dict[str, Callable[[], Any]] = {
    "Batches": lambda: DATA.batches(6, seed=3),
    "a mapped part": lambda: DATA.split(18, seed=1)[0].map(noisy, seed=5).batches(5, seed=3),
    "a stream": lambda: Stream(DATA).map(noisy, seed=5).batches(6, seed=3, buffer=7),
    "prefetched": lambda: DATA.map(noisy, seed=5).batches(6, seed=3).prefetch(2),
    "a list": lambda: [DATA[k : k + 4] for k in range(0, 20, 4)],
    "a class": Epochs,
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_run_goes_on_to_the_bit_from_every_step(tmp_path: Path, maker: str, accumulate: int) -> None:
    whole = new_trainer(accumulate=accumulate, clip_norm=0.2).fit(MAKERS[maker](), epochs=EPOCHS)
    path = tmp_path / "run.ckpt"
    assert whole.steps == EPOCHS * (len(list(MAKERS[maker]())) // accumulate)
    for steps in range(1, whole.steps + 1):
        first = new_trainer(accumulate=accumulate, clip_norm=0.2, callbacks=[SaveAt(steps, path)])
        with pytest.raises(InterruptedError):
            first.fit(MAKERS[maker](), epochs=EPOCHS)
        second = new_trainer(seed=1, accumulate=accumulate, clip_norm=0.2, mode="eager")
        second.load(path)
        assert second.steps == steps
        rest = second.fit(MAKERS[maker](), epochs=EPOCHS)
        assert rest.losses.tobytes() == whole.losses[steps:].tobytes()
        assert rest.state_digest == whole.state_digest
        assert second.steps == whole.steps


@pytest.mark.parametrize("counts", [{"steps": 9}, {"steps": 9, "epochs": 3}, {"steps": 5, "epochs": 3}, {"epochs": 1}])
def test_counts_include_what_was_done(tmp_path: Path, counts: dict[str, Any]) -> None:
    path = tmp_path / "run.ckpt"
    whole = new_trainer().fit(DATA.batches(6, seed=3), **counts)
    with pytest.raises(InterruptedError):
        new_trainer(callbacks=[SaveAt(3, path)]).fit(DATA.batches(6, seed=3), **counts)
    trainer = new_trainer()
    trainer.load(path)
    rest = trainer.fit(DATA.batches(6, seed=3), **counts)
    assert rest.losses.tobytes() == whole.losses[3:].tobytes()
    assert rest.state_digest == whole.state_digest


def test_a_run_may_be_made_longer(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    new_trainer(checkpoint=path).fit(DATA.batches(6, seed=3), epochs=1)
    trainer = new_trainer(checkpoint=path)
    trainer.load(path)
    longer = trainer.fit(DATA.batches(6, seed=3), epochs=3)
    assert longer.steps == 8
    assert longer.state_digest == new_trainer().fit(DATA.batches(6, seed=3), epochs=3).state_digest


def test_between_two_fits_a_checkpoint_begins_the_second(tmp_path: Path) -> None:
    trainer, path = new_trainer(), tmp_path / "run.ckpt"
    trainer.fit(DATA.batches(6, seed=3), epochs=2)
    trainer.save(path)
    expected = trainer.fit(DATA.batches(5, seed=4))
    other = new_trainer()
    other.load(path)
    result = other.fit(DATA.batches(5, seed=4))
    assert result.losses.tobytes() == expected.losses.tobytes()
    assert (result.state_digest, other.steps) == (expected.state_digest, trainer.steps)


def test_loading_keeps_the_arrays_and_a_trainer_may_go_back(tmp_path: Path) -> None:
    trainer, path = new_trainer(), tmp_path / "run.ckpt"
    trainer.fit(DATA.batches(6))
    trainer.save(path)
    arrays, digest = [*trainer.params.values(), *trainer.state.values()], state_digest(trainer.params, trainer.state)
    trainer.fit(DATA.batches(6))
    assert state_digest(trainer.params, trainer.state) != digest
    trainer.load(path)
    assert state_digest(trainer.params, trainer.state) == digest
    assert trainer.steps == 4
    now = [*trainer.params.values(), *trainer.state.values()]
    assert all(a is b for a, b in zip(now, arrays, strict=True))


def test_a_loaded_run_is_saved_as_it_was(tmp_path: Path) -> None:
    path, again = tmp_path / "run.ckpt", tmp_path / "again.ckpt"
    with pytest.raises(InterruptedError):
        new_trainer(callbacks=[SaveAt(6, path)]).fit(DATA.batches(6, seed=3), epochs=EPOCHS)
    trainer = new_trainer(seed=1)
    trainer.load(path)
    trainer.save(again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("every", "saved"), [(None, [0, 12]), (5, [0, 5, 10, 12]), (4, [0, 4, 8, 12, 12])])
def test_when_fit_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int | None, saved: list[int]) -> None:
    path, came = tmp_path / "run.ckpt", list[int]()
    replace = os.replace

    def noted(source: Any, target: Any) -> None:
        replace(source, target)
        came.append(checkpoint.read_checkpoint(path).steps)

    monkeypatch.setattr(os, "replace", noted)
    new_trainer(checkpoint=path, checkpoint_every=every).fit(DATA.batches(6, seed=3), epochs=EPOCHS)
    assert came == saved
    assert list(tmp_path.iterdir()) == [path]


# With a trace.


def test_a_trace_is_never_behind_its_checkpoint(tmp_path: Path) -> None:
    """The checkpoint's steps are in the file, though the recorder writes in large pieces."""
    came = list[int]()

    class Read(Callback):
        def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
            trainer.save(tmp_path / "run.ckpt")
            with open_trace(f"{tmp_path}/run.dgrr.partial", mode="tolerate_tail") as trace:
                came.append(len(trace))
            return None

    new_trainer(trace=tmp_path / "run.dgrr", callbacks=[Read()]).fit(DATA.batches(6))
    assert came == [1, 2, 3, 4]


def test_a_finished_trace_goes_on_if_the_fit_is_longer(tmp_path: Path) -> None:
    path, trace = tmp_path / "run.ckpt", tmp_path / "run.dgrr"
    new_trainer(checkpoint=path, trace=trace).fit(DATA.batches(6), epochs=2)
    before = trace.read_bytes()
    again = new_trainer(checkpoint=path, trace=trace)
    again.load(path)
    assert again.fit(DATA.batches(6), epochs=2).steps == 0
    assert trace.read_bytes() == before
    longer = new_trainer(checkpoint=path, trace=trace)
    longer.load(path)
    assert longer.fit(DATA.batches(6), epochs=3).steps == 4
    with open_trace(trace) as whole:
        assert len(whole) == 12


def test_after_an_interrupt_the_same_trainer_goes_on(tmp_path: Path) -> None:
    """As in a notebook: Ctrl-C, then load, then fit again."""
    whole = new_trainer(trace=tmp_path / "whole.dgrr").fit(DATA.batches(6), epochs=2)
    path, interrupted = tmp_path / "run.ckpt", SaveAt(99, tmp_path / "x")
    trainer = new_trainer(checkpoint=path, checkpoint_every=3, trace=tmp_path / "run.dgrr", callbacks=[interrupted])
    interrupted.steps = 5
    with pytest.raises(InterruptedError):
        trainer.fit(DATA.batches(6), epochs=2)
    trainer.load(path)
    assert trainer.steps == 3
    trainer.save(tmp_path / "again.ckpt")
    assert (tmp_path / "again.ckpt").read_bytes() == path.read_bytes()
    interrupted.steps = 99
    assert trainer.fit(DATA.batches(6), epochs=2).state_digest == whole.state_digest
    with open_trace(tmp_path / "run.dgrr") as ours, open_trace(tmp_path / "whole.dgrr") as theirs:
        assert ours.seal is not None
        assert theirs.seal is not None
        assert ours.seal.link == theirs.seal.link


def test_after_an_interrupt_the_last_step_can_be_saved(tmp_path: Path) -> None:
    whole, path, trace = tmp_path / "whole.dgrr", tmp_path / "run.ckpt", tmp_path / "run.dgrr"
    result = new_trainer(trace=whole).fit(DATA.batches(6), epochs=2)
    first = new_trainer(trace=trace, callbacks=[SaveAt(5, tmp_path / "other.ckpt")])
    with pytest.raises(InterruptedError):
        first.fit(DATA.batches(6), epochs=2)
    first.save(path)
    assert path.read_bytes() == (tmp_path / "other.ckpt").read_bytes()
    second = new_trainer(trace=trace, seed=1)
    second.load(path)
    assert second.fit(DATA.batches(6), epochs=2).state_digest == result.state_digest
    with open_trace(trace) as ours, open_trace(whole) as theirs:
        assert ours.seal is not None
        assert theirs.seal is not None
        assert ours.seal.link == theirs.seal.link
