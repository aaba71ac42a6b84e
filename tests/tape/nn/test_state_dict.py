"""Models in files: round trips to the bit, files that are whole or not there, what fits a model and what does not."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy

from dgrr.tape import DomainError, DTypeError, nn

pytestmark = pytest.mark.quick

MODEL = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm(3), nn.Flatten(), nn.Linear(12, 10))
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)


def same(a: dict[str, npt.NDArray[Any]], b: dict[str, npt.NDArray[Any]]) -> bool:
    def bits(arrays: dict[str, npt.NDArray[Any]]) -> list[tuple[str, Any, Any, bytes]]:
        return [(name, x.dtype, x.shape, x.tobytes()) for name, x in arrays.items()]

    return bits(a) == bits(b)


# Saving and loading.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_comes_back_to_the_bit_and_in_its_order(tmp_path: Path, dtype: Any) -> None:
    params, state = MODEL.init(5, dtype), MODEL.init_state(dtype)
    state["1.running_mean"] += dtype(0.1)
    nn.save(tmp_path / "model.safetensors", params, state)
    loaded = nn.load(tmp_path / "model.safetensors")
    assert same(loaded, {**params, **state})
    again = nn.load_state_dict(MODEL, loaded)
    assert same(again[0], params)
    assert same(again[1], state)


def test_any_arrays_come_back(tmp_path: Path) -> None:
    given = {
        "z": SPECIAL,
        "strided": np.arange(24, dtype=np.float64).reshape(4, 6).T[::2],
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 3), np.float32),
        "a": np.array([[1, -2]]),
        "mask": np.array([True, False]),
    }
    nn.save(tmp_path / "arrays", given)
    assert same(nn.load(tmp_path / "arrays"), given)


def test_another_reader_finds_the_arrays_under_their_names(tmp_path: Path) -> None:
    params, state = MODEL.init(0), MODEL.init_state()
    nn.save(tmp_path / "model", params, state)
    loaded = safetensors.numpy.load_file(tmp_path / "model")
    assert {name: x.tobytes() for name, x in loaded.items()} == {n: x.tobytes() for n, x in (params | state).items()}


def test_the_file_of_another_writer_is_read(tmp_path: Path) -> None:
    params = MODEL.init(0)
    foreign = {"10": np.ones(2, np.float16), "9": np.arange(3, dtype=np.uint8), **params}
    safetensors.numpy.save_file(foreign, tmp_path / "model", metadata={"format": "pt"})
    loaded = nn.load(tmp_path / "model")
    assert list(loaded) == sorted(foreign)
    assert all(loaded[name].tobytes() == x.tobytes() and loaded[name].dtype == x.dtype for name, x in foreign.items())
    fitted, _ = nn.load_state_dict(MODEL, {name: loaded[name] for name in params} | MODEL.init_state())
    assert same(fitted, params)


def test_equal_arrays_make_equal_files(tmp_path: Path) -> None:
    for name in ("one", "other"):
        nn.save(tmp_path / name, MODEL.init(0), MODEL.init_state())
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    nn.save(path, {"w": np.zeros(2)})
    nn.save(path, {"w": np.ones(3)})
    assert nn.load(path)["w"].tolist() == [1.0] * 3

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        nn.save(path, {"w": np.full(4, 2.0)})
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["model"]
    assert nn.load(path)["w"].tolist() == [1.0] * 3
    nn.save(path, {"w": np.full(4, 2.0)})
    assert nn.load(path)["w"].tolist() == [2.0] * 4
    assert os.listdir(tmp_path) == ["model"]


def test_the_new_file_is_on_the_disk_before_it_takes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[tuple[str, int, int]] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        there = os.fstat(descriptor)
        order.append(("fsync", there.st_ino, there.st_size))
        fsync(descriptor)

    def replaced(source: Path, target: Path) -> None:
        order.append(("replace", source.stat().st_ino, source.stat().st_size))
        assert nn.load(source)["w"].tolist() == [1.0]
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    nn.save(tmp_path / "model", {"w": np.ones(1)})
    file, folder = (tmp_path / "model").stat(), tmp_path.stat()
    whole = (file.st_ino, file.st_size)
    assert order == [("fsync", *whole), ("replace", *whole), ("fsync", folder.st_ino, folder.st_size)]


# What is refused.


def test_names_that_are_parameters_and_state(tmp_path: Path) -> None:
    with pytest.raises(DomainError) as caught:
        nn.save(tmp_path / "model", {"a": np.ones(1), "b": np.ones(1)}, {"b": np.ones(1)})
    assert str(caught.value) == "save: arguments 'params' and 'state': expected names of their own, got 'b' in both"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [np.float16, np.complex64, np.int32, object, ">f4"])
def test_elements_that_the_engine_does_not_hold(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(DTypeError) as caught:
        nn.save(tmp_path / "model", {"w": np.ones(1, dtype)})
    assert str(caught.value) == f"save: 'w': expected float32, float64, int64 or bool, got {np.dtype(dtype)}"
    assert not list(tmp_path.iterdir())


def written(path: Path, header: dict[str, Any], data: bytes) -> Path:
    """A file by the format's own page: length of the header, header, data."""
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(kind: str, size: int) -> dict[str, Any]:
    return {"dtype": kind, "shape": [1], "data_offsets": [0, size]}


@pytest.mark.parametrize(("kind", "size"), [("BF16", 2), ("F8_E4M3", 1)])
def test_elements_that_numpy_does_not_have(tmp_path: Path, kind: str, size: int) -> None:
    path = written(tmp_path / "model", {"w": entry(kind, size)}, bytes(size))
    with pytest.raises(DTypeError) as caught:
        nn.load(path)
    assert str(caught.value) == (f"load: 'w': expected an element type of numpy, got {kind}; convert it before saving")


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_damaged_files(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "model"
    nn.save(path, MODEL.init(0))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DomainError) as caught:
        nn.load(path)
    assert str(caught.value).startswith(f"load: {str(path)!r} is damaged or no safetensors file: ")


OTHER_ORDERS = [
    '["w", "v"]',
    "[]",
    '["w", "w"]',
    "w",
    '"w"',
    "5",
    "null",
    '{"w": 1}',
    "[1]",
    '[["w"]]',
    "[" * 10,
    '["w"',
]


@pytest.mark.parametrize("order", OTHER_ORDERS)
def test_an_order_of_anything_else(tmp_path: Path, order: str) -> None:
    path = written(tmp_path / "model", {"__metadata__": {"dgrr.order": order}, "w": entry("F32", 4)}, bytes(4))
    with pytest.raises(DomainError) as caught:
        nn.load(path)
    assert str(caught.value) == f"load: metadata 'dgrr.order': expected a list of the names ['w'], got {order}"


@pytest.mark.parametrize("piece", ["[", "0,", '"w",', " "])
def test_a_long_order_is_not_read(tmp_path: Path, piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    order = "[" + piece * 1_000_000
    path = written(tmp_path / "model", {"__metadata__": {"dgrr.order": order}, "w": entry("F32", 4)}, bytes(4))
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(DomainError) as caught:
        nn.load(path)
    text = f"load: metadata 'dgrr.order': expected a list of the names ['w'], got {order[:200]}…"
    assert str(caught.value) == text


def test_a_deep_order_is_refused(tmp_path: Path) -> None:
    name = "w" * 20_000
    order = "[" * 100_000
    path = written(tmp_path / "model", {"__metadata__": {"dgrr.order": order}, name: entry("F32", 4)}, bytes(4))
    with pytest.raises(DomainError, match="metadata 'dgrr.order': expected a list of the names"):
        nn.load(path)


def test_names_that_take_the_longest_escapes_come_back(tmp_path: Path) -> None:
    given = {"\U0001f600" * 9: np.ones(1), '"\\': np.ones(2), "é": np.ones(3)}
    nn.save(tmp_path / "model", given)
    assert same(nn.load(tmp_path / "model"), given)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        nn.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        nn.save(tmp_path / "none" / "model", {"w": np.ones(1)})


def test_without_safetensors() -> None:
    """In a process of its own, where the package cannot be imported."""
    program = """
import sys
sys.modules["safetensors"] = None
from dgrr.tape import nn
for call in (lambda: nn.load("model"), lambda: nn.save("model", {})):
    try:
        call()
    except ModuleNotFoundError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{call}: expected safetensors to be installed: pip install 'dgrr[safetensors]'" for call in ("load", "save")
    ]


# What fits a model.


def test_arrays_are_copied_and_put_in_order() -> None:
    given = MODEL.init(0) | MODEL.init_state()
    params, state = nn.load_state_dict(MODEL, dict(reversed(given.items())))
    assert list(params) == list(MODEL.parameters())
    assert list(state) == list(MODEL.states())
    assert not any(np.shares_memory(x, given[name]) for name, x in (params | state).items())
    assert all(x.flags.writeable and x.flags.c_contiguous for x in (params | state).values())


def test_every_entry_that_does_not_fit_is_named() -> None:
    given: dict[str, Any] = MODEL.init(0) | MODEL.init_state()
    del given["0.bias"], given["1.running_var"]
    given |= {"1.num_batches_tracked": np.array(7), "3.weight": np.ones((12, 10), np.float32)}
    given |= {"1.weight": np.ones(3, np.float16), "3.bias": np.ones(9, np.int64)}
    with pytest.raises(DomainError) as caught:
        nn.load_state_dict(MODEL, given)
    assert str(caught.value) == (
        "load_state_dict: argument 'arrays': expected those of the model, got "
        "missing '0.bias' (3,); missing '1.running_var' (3,); "
        "unexpected '1.num_batches_tracked' (); "
        "'3.weight' of shape (12, 10) instead of (10, 12); '3.bias' of shape (9,) instead of (10,); "
        "'1.weight' of float16 instead of float32 or float64; '3.bias' of int64 instead of float32 or float64"
    )
