"""The file of a checkpoint: what is in it, written whole or not at all, and refused if not whole or not its own."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from struct import pack
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, CheckpointError, Trainer, state_digest
from dgrr.runtime.training import checkpoint
from dgrr.tape import NUMERICS, DomainError

from .saving import DATA, RULE, SaveAt, new_trainer


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint of a small run."""
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5))
    trainer.fit([np.ones(2)] * 3)
    trainer.save(tmp_path / "run.ckpt")
    return tmp_path / "run.ckpt"


# What is in it.


def test_numpy_reads_a_checkpoint(tmp_path: Path) -> None:
    trainer = new_trainer()
    trainer.fit(DATA.batches(6))
    trainer.save(tmp_path / "run.ckpt")
    with np.load(tmp_path / "run.ckpt", allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
        assert (header["version"], header["steps"], header["law"]["rule"]) == (2, 4, repr(RULE))
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


def test_the_archive_has_no_pickle(saved: Path) -> None:
    with ZipFile(saved) as archive:
        assert archive.namelist() == ["header.npy", "params/w.npy", "state/step.npy"]
        assert all(b"'descr': '|O'" not in archive.read(name) for name in archive.namelist())


# An earlier version.


def version_1(path: Path) -> None:
    """A file as dgrr wrote it before callbacks had states: in a fit of `small`, from ones, after 3 steps."""
    header = {
        "law": {
            "numerics": NUMERICS,
            "seed": 0,
            "rule": repr(SGD(0.5)),
            "accumulate": 1,
            "clip_norm": None,
            "clip_value": None,
        },
        "steps": 3,
        "loss": 0.0,
        "cursor": {"epoch": 0, "taken": 3, "steps": 3, "stopped": False},
        "state_digest": "for people",
        "version": 1,
        "names": {"params": ["w"], "state": ["step"], "model_state": []},
    }
    members = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "params/w": np.array([-0.5, -0.5]),
        "state/step": np.array(3),
    }
    archive = BytesIO()
    np.savez(archive, **members)  # type: ignore[arg-type]
    signed = archive.getvalue()[:-2]  # the rest is the length of the comment, which is none
    path.write_bytes(signed + pack("<H", 64) + sha256(signed).hexdigest().encode())


def test_a_run_goes_on_from_a_checkpoint_of_version_1(tmp_path: Path) -> None:
    version_1(tmp_path / "old.ckpt")
    trainer = small(1.0)
    trainer.load(tmp_path / "old.ckpt")
    assert (trainer.steps, trainer.params["w"].tolist(), trainer.state["step"]) == (3, [-0.5, -0.5], 3)
    assert trainer.fit([np.ones(2)] * 5).steps == 2
    uninterrupted = small(1.0)
    uninterrupted.fit([np.ones(2)] * 5)
    assert state_digest(trainer.params, trainer.state) == state_digest(uninterrupted.params, uninterrupted.state)


# What is refused.


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
    monkeypatch.setattr(checkpoint, "VERSION", 3)
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
    monkeypatch.setattr("dgrr.runtime.training.trainer.NUMERICS", 77)
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
