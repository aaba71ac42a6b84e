"""A trace that is there already: refused with every way out, or replaced once the new one is whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Callback, Keep, Trainer
from dgrr.tape import DomainError
from dgrr.trace import TraceWriteError, open_trace

from ...keeping import kept
from .saving import DATA, SaveAt, new_trainer as digits_trainer

BATCHES = [np.full(2, float(k)) for k in range(3)]


def new_trainer(path: Path, **options: Any) -> Trainer:
    return Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), **kept(path, options))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A finished trace of three steps."""
    new_trainer(tmp_path / "run.dgrr").fit(BATCHES)
    return tmp_path / "run.dgrr"


def steps_of(path: Path) -> int:
    with open_trace(path) as trace:
        assert trace.sealed
        return len(trace)


WAYS_OUT = (
    "{0!r} already exists, and a finished trace is never overwritten: {1}choose another path, or pass "
    "trace=Keep({0!r}, overwrite=True) to replace it"
)


def test_a_finished_trace_is_refused_at_once(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(DomainError) as caught:
        new_trainer(path)
    assert str(caught.value) == "Trainer: argument 'trace': " + WAYS_OUT.format(str(path), "")
    with pytest.raises(DomainError):
        new_trainer(path, checkpoint=path.with_name("none.ckpt"))
    assert path.read_bytes() == before


def test_a_trace_that_was_finished_meanwhile_is_refused_by_fit(tmp_path: Path) -> None:
    path = tmp_path / "run.dgrr"
    one, other = new_trainer(path), new_trainer(path)
    one.fit(BATCHES)
    before = path.read_bytes()
    with pytest.raises(DomainError) as caught:
        other.fit(BATCHES)
    assert str(caught.value) == "fit: " + WAYS_OUT.format(str(path), "")
    assert (other.steps, path.read_bytes()) == (0, before)
    assert list(tmp_path.iterdir()) == [path]


def test_with_a_checkpoint_loading_it_is_a_way_out(tmp_path: Path) -> None:
    path, saved = tmp_path / "run.dgrr", tmp_path / "run.ckpt"
    new_trainer(path, checkpoint=saved).fit(BATCHES)
    again = new_trainer(path, checkpoint=saved)
    with pytest.raises(DomainError) as caught:
        again.fit(BATCHES)
    assert str(caught.value) == "fit: " + WAYS_OUT.format(str(path), f"load {str(saved)!r} to go on, ")
    again.load(saved)
    assert again.fit(BATCHES).steps == 0


def test_the_checkpoint_of_the_beginning_does_not_open_a_finished_trace(path: Path) -> None:
    before, start = path.read_bytes(), path.with_name("start.ckpt")
    new_trainer(path.with_name("other.dgrr")).save(start)
    start.rename(path.with_name("run.ckpt"))
    trainer = new_trainer(path, checkpoint=path.with_name("run.ckpt"))
    trainer.load(path.with_name("run.ckpt"))
    with pytest.raises(DomainError, match="a finished trace is never overwritten"):
        trainer.fit(BATCHES)
    assert path.read_bytes() == before


def test_overwriting_keeps_the_old_trace_until_the_new_one_is_sealed(path: Path) -> None:
    before, seen = path.read_bytes(), list[bytes]()

    class Read(Callback):
        def on_step(self, trainer: Trainer, step: int, loss: float) -> None:
            seen.append(path.read_bytes())

    new_trainer(path, overwrite=True, callbacks=[Read()]).fit(BATCHES[:2])
    assert seen == [before] * 2
    assert steps_of(path) == 2
    assert list(path.parent.iterdir()) == [path]


def test_a_run_that_fails_keeps_the_old_trace(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(InterruptedError):
        new_trainer(path, overwrite=True, callbacks=[SaveAt(2, path.with_name("x"))]).fit(BATCHES)
    assert path.read_bytes() == before
    assert Path(f"{path}.partial").exists()
    new_trainer(path, overwrite=True).fit(BATCHES[:1])
    assert steps_of(path) == 1


def test_an_overwriting_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    path, saved = tmp_path / "run.dgrr", tmp_path / "run.ckpt"
    whole = digits_trainer(trace=path).fit(DATA.batches(6, seed=3), epochs=2)
    with pytest.raises(InterruptedError):
        digits_trainer(trace=Keep(path, overwrite=True), callbacks=[SaveAt(5, saved)]).fit(
            DATA.batches(6, seed=3), epochs=2
        )
    trainer = digits_trainer(trace=Keep(path, overwrite=True))
    trainer.load(saved)
    assert trainer.fit(DATA.batches(6, seed=3), epochs=2).state_digest == whole.state_digest
    assert steps_of(path) == 8
    assert sorted(tmp_path.iterdir()) == [saved, path]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_trainer_beside_the_first_is_refused(tmp_path: Path, overwrite: bool) -> None:
    path, texts = tmp_path / "run.dgrr", list[str]()

    class Second(Callback):
        def on_step(self, trainer: Trainer, step: int, loss: float) -> None:
            second = new_trainer(path, overwrite=overwrite)
            with pytest.raises(TraceWriteError) as caught:
                second.fit(BATCHES)
            assert second.steps == 0
            texts.append(str(caught.value))

    new_trainer(path, callbacks=[Second()]).fit(BATCHES)
    assert len(set(texts)) == 1
    assert texts[0].endswith("choose another path, or try again once it has ended")
    assert steps_of(path) == 3
