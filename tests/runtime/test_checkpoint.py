"""Checkpoints: a run goes on to the bit from every one of them, and what is not whole or not its own is refused."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, Callback, CheckpointError, Dataset, Trainer, checkpoint, state_digest
from dgrr.runtime.optim import Cosine
from dgrr.tape import DomainError, nn, ops
from dgrr.trace import TraceWriteError, open_trace

Array = npt.NDArray[Any]
MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
RNG = np.random.default_rng(6)
DATA = Dataset(RNG.standard_normal((20, 3)).astype(np.float32), RNG.integers(0, 2, 20))
RULE = Adam(Cosine(0.05, steps=12))
EPOCHS = 3


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def new_trainer(seed: int = 0, rule: Any = RULE, **options: Any) -> Trainer:
    return Trainer(loss_fn, MODEL.init(seed), rule, **options)


class Epochs:
    """Not a `Batches`: counts its epochs as it goes, in the body of a generator."""

    def __init__(self) -> None:
        self.epoch = 0

    def __iter__(self) -> Iterator[Any]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        yield from DATA.batches(6, seed=3).epoch(epoch)


MAKERS: dict[str, Callable[[], Any]] = {
    "Batches": lambda: DATA.batches(6, seed=3),
    "a list": lambda: [DATA[k : k + 4] for k in range(0, 20, 4)],
    "a class": Epochs,
}


class SaveAt(Callback):
    """Saves after a number of steps, then ends the run in bad order."""

    def __init__(self, steps: int, path: Path) -> None:
        self.steps, self.path = steps, path

    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
        if step + 1 == self.steps:
            trainer.save(self.path)
            raise InterruptedError
        return None


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


def test_numpy_reads_a_checkpoint(tmp_path: Path) -> None:
    trainer = new_trainer()
    trainer.fit(DATA.batches(6))
    trainer.save(tmp_path / "run.ckpt")
    with np.load(tmp_path / "run.ckpt", allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
        assert (header["version"], header["steps"], header["law"]["rule"]) == (1, 4, repr(RULE))
        assert header["state_digest"] == state_digest(trainer.params, trainer.state)
        assert archive["params/0.weight"].tobytes() == trainer.params["0.weight"].tobytes()
        assert archive["state/step"] == 4


def test_any_name_of_a_parameter_is_saved(tmp_path: Path) -> None:
    params = {name: np.array([k + 1.0]) for k, name in enumerate(["w", "w.npy", "../w", "a/b", "é", "", "header"])}

    def total(p: Any, batch: Any) -> Any:
        return sum((p[name].sum() for name in params), start=0.0 * p["w"].sum())

    trainer = Trainer(total, params, SGD(0.5))
    trainer.save(tmp_path / "run.ckpt")
    values = {name: array.tolist() for name, array in trainer.params.items()}
    trainer.fit([np.zeros(1)])
    trainer.load(tmp_path / "run.ckpt")
    assert {name: array.tolist() for name, array in trainer.params.items()} == values


# What is refused.


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint of a small run."""
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5))
    trainer.fit([np.ones(2)] * 3)
    trainer.save(tmp_path / "run.ckpt")
    return tmp_path / "run.ckpt"


def small(start: float = 0.0) -> Trainer:
    return Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.full(2, start)}, SGD(0.5))


def refused(trainer: Trainer, path: Path) -> str:
    """The text with which a trainer refuses a checkpoint, after which nothing has changed."""
    before = state_digest(trainer.params, trainer.state)
    with pytest.raises(CheckpointError) as caught:
        trainer.load(path)
    assert (state_digest(trainer.params, trainer.state), trainer.steps) == (before, 0)
    return str(caught.value).replace(str(path), "PATH")


DAMAGED = "load: 'PATH' is damaged or no checkpoint: its digest does not match its bytes; load another one"


def test_every_flipped_bit_and_every_truncation_is_refused(saved: Path) -> None:
    good, trainer = saved.read_bytes(), small()
    for i in range(len(good)):
        bad = bytearray(good)
        bad[i] ^= 1 << i % 8
        saved.write_bytes(bad)
        assert refused(trainer, saved) == DAMAGED
    for length in range(0, len(good), 7):
        saved.write_bytes(good[:length])
        assert refused(trainer, saved) == DAMAGED
    saved.write_bytes(good + b"\0")
    assert refused(trainer, saved) == DAMAGED
    saved.write_bytes(good)
    trainer.load(saved)
    assert trainer.params["w"].tolist() == [-0.5, -0.5]


def test_another_file_is_refused(saved: Path) -> None:
    np.savez(saved.with_suffix(".npz"), w=np.ones(2))
    assert refused(small(), saved.with_suffix(".npz")) == DAMAGED
    with pytest.raises(FileNotFoundError):
        small().load(saved.with_name("none"))


def test_another_version_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "VERSION", 2)
    trainer = small()
    trainer.save(saved)
    monkeypatch.undo()
    assert refused(small(), saved) == "load: 'PATH' was written by another version of dgrr; load it there"


OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"optimizer": SGD(0.25)}, f"rule: it was saved with {SGD(0.5)}, this run has {SGD(0.25)}"),
    ({"optimizer": Adam(0.5)}, f"rule: it was saved with {SGD(0.5)}, this run has {Adam(0.5)}"),
    ({"seed": 1}, "seed: it was saved with 0, this run has 1"),
    ({"accumulate": 2}, "accumulate: it was saved with 1, this run has 2"),
    ({"clip_norm": 0.1}, "clip_norm: it was saved with None, this run has 0.1"),
    ({"clip_value": 0.1}, "clip_value: it was saved with None, this run has 0.1"),
]


@pytest.mark.parametrize(("other", "text"), OTHERS)
def test_another_run_is_refused(saved: Path, other: dict[str, Any], text: str) -> None:
    options: dict[str, Any] = {"optimizer": SGD(0.5), **other}
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.zeros(2)}, **options)
    assert refused(trainer, saved) == f"load: 'PATH': {text}"


def test_another_numerics_version_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgrr.runtime.trainer.NUMERICS", 77)
    assert refused(small(), saved).startswith("load: 'PATH': numerics: it was saved with ")


def test_another_model_is_refused(saved: Path) -> None:
    text = "load: 'PATH' is of another model: load_state_dict: params"
    named = Trainer(lambda p, x: (p["v"] * x).sum(), {"v": np.zeros(2)}, SGD(0.5))
    assert refused(named, saved) == f"{text}: expected the names ['v'], got ['w']"
    shaped = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.zeros(3)}, SGD(0.5))
    assert refused(shaped, saved) == f"{text} 'w': expected float64[3], got float64[2]"


def test_a_checkpoint_that_nobody_loaded_is_not_overwritten(saved: Path) -> None:
    before = saved.read_bytes()
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), checkpoint=saved)
    with pytest.raises(DomainError) as caught:
        trainer.fit([np.ones(2)])
    assert str(caught.value) == f"fit: the checkpoint {str(saved)!r} is there already; load it to go on, or remove it"
    assert saved.read_bytes() == before
    assert trainer.steps == 0
    other = saved.with_name("other.ckpt")
    trainer.save(other)
    trainer.load(other)
    with pytest.raises(DomainError, match="is there already"):
        trainer.fit([np.ones(2)])


def test_data_that_end_before_the_checkpoint_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    with pytest.raises(InterruptedError):
        new_trainer(callbacks=[SaveAt(3, path)]).fit(DATA.batches(6))
    trainer = new_trainer()
    trainer.load(path)
    with pytest.raises(DomainError) as caught:
        trainer.fit(DATA.batches(10))
    assert str(caught.value) == (
        "fit: argument 'batches': expected at least 3 batches in epoch 0, from where the checkpoint goes on, got 2; "
        "pass the batches of the run that saved it"
    )


# Writing that fails.


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(
    saved: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    before = saved.read_bytes()

    def fail(*args: Any) -> None:
        raise OSError("no space left")

    trainer = small()
    trainer.load(saved)
    trainer.fit([np.ones(2)])
    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="no space left"):
        trainer.save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    trainer.save(saved)
    assert saved.read_bytes() != before


def test_nothing_stands_under_the_name_before_all_is_written(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = list[str]()
    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, _noting(order, name, getattr(os, name)))
    small().save(saved)
    assert order == ["fsync", "replace", "fsync"]


def _noting(order: list[str], name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*args: Any) -> Any:
        order.append(name)
        return call(*args)

    return noted


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


def test_a_finished_trace_is_not_reopened(tmp_path: Path) -> None:
    path, trace = tmp_path / "run.ckpt", tmp_path / "run.dgrr"
    new_trainer(checkpoint=path, trace=trace).fit(DATA.batches(6), epochs=2)
    before = trace.read_bytes()
    again = new_trainer(checkpoint=path, trace=trace)
    again.load(path)
    assert again.fit(DATA.batches(6), epochs=2).steps == 0
    assert trace.read_bytes() == before
    longer = new_trainer(checkpoint=path, trace=trace)
    longer.load(path)
    with pytest.raises(TraceWriteError):
        longer.fit(DATA.batches(6), epochs=3)
    assert trace.read_bytes() == before


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


def test_the_archive_has_no_pickle(saved: Path) -> None:
    with ZipFile(saved) as archive:
        assert archive.namelist() == ["header.npy", "params/w.npy", "state/step.npy"]
        assert all(b"'descr': '|O'" not in archive.read(name) for name in archive.namelist())
