"""The file of a checkpoint: what is in it, written whole or not at all, and refused if not whole or not its own."""

import json
import os
import random
import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from struct import pack
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, CheckpointError, EarlyStopping, Trainer, state_digest
from dgrr.runtime.training.saving import checkpoint
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
        assert (header["version"], header["steps"], header["law"]["rule"]) == (3, 4, repr(RULE))
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
    monkeypatch.setattr(checkpoint, "VERSION", 4)
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
    monkeypatch.setattr("dgrr.runtime.training.saving.saved_run.NUMERICS", 77)
    assert refused(small(), saved).startswith("load: 'PATH': numerics: it was saved with ")


def test_another_model_is_refused(saved: Path) -> None:
    text = "load: 'PATH' belongs to another model: load_state_dict: params"
    named = Trainer(lambda p, x: (p["v"] * x).sum(), {"v": np.zeros(2)}, SGD(0.5))
    assert refused(named, saved) == f"{text}: expected the names ['v'], got ['w']"
    shaped = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.zeros(3)}, SGD(0.5))
    assert refused(shaped, saved) == f"{text} 'w': expected float64[3], got float64[2]"


def test_a_checkpoint_that_nobody_loaded_is_not_overwritten(saved: Path) -> None:
    before = saved.read_bytes()
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), checkpoint=saved)
    with pytest.raises(DomainError) as caught:
        trainer.fit([np.ones(2)])
    assert str(caught.value) == f"fit: the checkpoint {str(saved)!r} already exists; load it to continue, or remove it"
    assert saved.read_bytes() == before
    assert trainer.steps == 0
    other = saved.with_name("other.ckpt")
    trainer.save(other)
    trainer.load(other)
    with pytest.raises(DomainError, match="already exists"):
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


# What is signed and makes no sense: whoever knows the format can sign anything.


def signed(path: Path, members: dict[str, bytes], compression: int = ZIP_STORED) -> Path:
    """An archive of any bytes, with the digest behind it."""
    with ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    data = path.read_bytes()[:-2]
    path.write_bytes(data + (64).to_bytes(2, "little") + sha256(data).hexdigest().encode())
    return path


def npy(array: Any) -> bytes:
    file = BytesIO()
    np.lib.format.write_array(file, np.asarray(array))
    return file.getvalue()


def claiming(shape: str, dtype: str = "<f8", data: bytes = b"") -> bytes:
    """An array whose header claims a shape."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def header_of(saved: Path) -> dict[str, Any]:
    with np.load(saved) as archive:
        return dict(json.loads(archive["header"].tobytes()))


def text_of(header: Any) -> bytes:
    return npy(np.frombuffer(json.dumps(header).encode(), np.uint8))


GOOD = {"params/w": npy(np.ones(2)), "state/step": npy(np.array(3))}
NO_CHECKPOINT = "load: 'PATH' was signed, but is no checkpoint: "
COUNT = "expected a whole number of at least 0, got"
CURSOR = "expected epoch, taken, steps, stopped, or null, got"
WRONG: list[tuple[str, Any, str]] = [
    ("steps", "x", f"steps: {COUNT} 'x'"),
    ("steps", -1, f"steps: {COUNT} -1"),
    ("steps", 1.5, f"steps: {COUNT} 1.5"),
    ("steps", True, f"steps: {COUNT} True"),
    ("steps", 1 << 63, f"steps: {COUNT} 9223372036854775808"),
    ("version", "2", f"version: {COUNT} '2'"),
    ("version", None, f"version: {COUNT} None"),
    ("law", [], "law: expected an object, got []"),
    ("loss", "low", "loss: expected a number or null, got 'low'"),
    ("state_digest", 0, "state_digest: expected a text, got 0"),
    ("cursor", 7, f"cursor: {CURSOR} 7"),
    ("cursor", {"epoch": 0}, f"cursor: {CURSOR} {{'epoch': 0}}"),
    ("cursor", {"epoch": 9, "taken": 0, "steps": 3, "stopped": False}, "cursor: expected its own steps, got {"),
    ("cursor", {"epoch": 0, "taken": 0, "steps": 4, "stopped": False}, "cursor: expected its own steps, got {"),
    ("cursor", {"epoch": 0, "taken": -1, "steps": 3, "stopped": False}, f"cursor: {CURSOR} "),
    ("cursor", {"epoch": 0, "taken": 1, "steps": 3, "stopped": 0}, f"cursor: {CURSOR} "),
    ("callbacks", {"a": 1}, "callbacks: expected a list of pairs of a name and a state, got {'a': 1}"),
    ("callbacks", [["a"]], "callbacks: expected a list of pairs of a name and a state, got [['a']]"),
    ("names", ["w"], "names: expected lists of different names, got ['w']"),
    ("names", {"params": ["w", "w"]}, "names: expected lists of different names, got {'params': ['w', 'w']}"),
    ("names", {"params": [1]}, "names: expected lists of different names, got {'params': [1]}"),
    ("names", {"params": ["v"]}, "KeyError: \"There is no item named 'params/v.npy' in the archive\""),
]


@pytest.mark.parametrize(("field", "value", "text"), WRONG)
def test_a_header_of_nonsense_is_refused(saved: Path, field: str, value: Any, text: str) -> None:
    header = header_of(saved) | {field: value}
    told = refused(small(), signed(saved, {"header": text_of(header), **GOOD}))
    assert told.startswith(NO_CHECKPOINT + text)
    assert told.endswith("; load another one")


def test_a_header_without_a_field_is_refused(saved: Path) -> None:
    for field in header_of(saved):
        header = {name: value for name, value in header_of(saved).items() if name != field}
        signed(saved.with_name("other"), {"header": text_of(header), **GOOD})
        if field == "callbacks":
            small().load(saved.with_name("other"))
            continue
        told = refused(small(), saved.with_name("other")).replace("other", "PATH")
        assert "was signed, but is no checkpoint: " in told
        assert f"{field}: expected" in told


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (npy(np.frombuffer(b"[" * 200_000, np.uint8)), "RecursionError: "),
        (npy(np.frombuffer(b'{"steps": ' + b"9" * 5000 + b"}", np.uint8)), "ValueError: "),
        (npy(np.frombuffer(b"\xff", np.uint8)), "UnicodeDecodeError: "),
        (text_of([]), "header: expected an object, got []"),
        (b"", "ValueError: "),
        (b"no array", "ValueError: "),
        (claiming("(1 << 40,)"), "ValueError: "),
        (claiming("(1099511627776,)"), "'header': 0 bytes for an array of float64 (1099511627776,)"),
        (claiming("(-1, -1)", data=bytes(8)), "'header': 8 bytes for an array of float64 (-1, -1)"),
        (claiming("(4611686018427387904, 4)"), "'header': 0 bytes for an array of float64 (4611686018427387904, 4)"),
        (claiming("(1,)", "|O", bytes(8)), "'header': 8 bytes for an array of object (1,)"),
        (claiming("(9,)", "|V0"), "ValueError: "),
        (b"\x93NUMPY\x03\x00" + bytes(9), "KeyError: (3, 0)"),
    ],
)
def test_arrays_of_nonsense_are_refused(saved: Path, header: bytes, text: str) -> None:
    assert refused(small(), signed(saved, {"header": header, **GOOD})).startswith(NO_CHECKPOINT + text)


def test_an_archive_that_inflates_is_refused_before_it_does(saved: Path) -> None:
    bomb = claiming(f"({100 << 20},)", "|u1", bytes(100 << 20))
    signed(
        saved, {"header": text_of(header_of(saved)), "params/w": bomb, "state/step": GOOD["state/step"]}, ZIP_DEFLATED
    )
    assert saved.stat().st_size < 1 << 20
    tracemalloc.start()
    told = refused(small(), saved)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told == f"{NO_CHECKPOINT}'header.npy' is packed, and arrays are stored as they are; load another one"
    assert peak < 1 << 24


def test_arrays_that_share_their_bytes_are_refused(saved: Path) -> None:
    """Two entries of the directory that lead to one array: more arrays than bytes."""
    signed(saved, {"header": text_of(header_of(saved)), "params/w": npy(np.ones(1000)), "params/v": npy(np.ones(1000))})
    data = saved.read_bytes()[:-66]
    with ZipFile(saved) as archive:
        offsets = [info.header_offset for info in archive.infolist()]
    directory = data.rindex(b"PK\1\2", 0, data.rindex(b"PK\5\6"))
    shared = data[: directory + 42] + offsets[1].to_bytes(4, "little") + data[directory + 46 :]
    cut = shared[: offsets[2]] + shared[data.index(b"PK\1\2") :]
    end = cut.rindex(b"PK\5\6")
    cut = cut[: end + 16] + cut.index(b"PK\1\2").to_bytes(4, "little") + cut[end + 20 :]
    saved.write_bytes(cut + (64).to_bytes(2, "little") + sha256(cut).hexdigest().encode())
    assert refused(small(), saved) == f"{NO_CHECKPOINT}its arrays have more bytes than the file; load another one"


@pytest.mark.parametrize("data", [b"", b"PK\5\6", b"PK\5\6" + b"\xff" * 16, b"PK\5\6" + bytes(16), bytes(500)])
def test_what_is_signed_and_no_archive_is_refused(saved: Path, data: bytes) -> None:
    saved.write_bytes(data + (64).to_bytes(2, "little") + sha256(data).hexdigest().encode())
    assert refused(small(), saved).startswith((NO_CHECKPOINT, DAMAGED))


def test_a_signed_archive_altered_anywhere_is_loaded_or_refused(saved: Path) -> None:
    good, rng, outcomes = saved.read_bytes()[:-66], random.Random(0), set[bool]()
    for _ in range(400):
        data, place = bytearray(good), rng.randrange(len(good) - 4)
        alterations: list[bytes] = [bytes([data[place] ^ 1 << rng.randrange(8)]), b"\xff" * 4, bytes(4), b""]
        altered = rng.choice(alterations)
        data[place : place + (len(altered) or rng.randrange(30))] = altered
        saved.write_bytes(bytes(data) + (64).to_bytes(2, "little") + sha256(data).hexdigest().encode())
        try:
            small().load(saved)
            outcomes.add(True)
        except CheckpointError:
            outcomes.add(False)
    assert outcomes == {True, False}


def test_a_callback_that_does_not_take_its_state(saved: Path) -> None:
    header = header_of(saved) | {"callbacks": [["EarlyStopping", 5]]}
    stopping = EarlyStopping("loss", patience=1)
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.zeros(2)}, SGD(0.5), callbacks=[stopping])
    before = stopping.state_dict()
    told = refused(trainer, signed(saved, {"header": text_of(header), **GOOD}))
    assert told.startswith("load: 'PATH': a callback does not take its state: TypeError: ")
    assert stopping.state_dict() == before


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
