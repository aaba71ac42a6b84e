"""What a data set takes: whatever numpy makes an array of, by position or by name; what it refuses; copies of it."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.data import Dataset
from dgrr.tape import DgrrError, DomainError, DTypeError, ShapeError


class Series:
    """As pandas does it: an array for numpy, an index of its own that is no position."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __getitem__(self, index: Any) -> Any:
        raise KeyError(index)


TAKEN: dict[str, tuple[Any, Any]] = {
    "a list": ([1, 2, 3], np.array([1, 2, 3])),
    "nested lists": ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])),
    "a tuple": ((1, 2, 3), np.array([1, 2, 3])),
    "a range": (range(3), np.arange(3)),
    "a series": (Series([1.5, 2.5, 3.5]), np.array([1.5, 2.5, 3.5])),
    "arrays in a list": ([np.zeros(2), np.ones(2), np.ones(2)], np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])),
    "strides": (np.arange(12).reshape(2, 6)[:, ::2].T, np.array([[0, 6], [2, 8], [4, 10]])),
    "text": (["a", "b", "c"], np.array(["a", "b", "c"])),
}


@pytest.mark.parametrize("form", TAKEN)
def test_what_numpy_takes(form: str) -> None:
    given, expected = TAKEN[form]
    data = Dataset(given)
    assert len(data) == 3
    for array, wanted in ((data.arrays[0], expected), (data[1:][0], expected[1:]), (data[2][0], expected[2])):
        assert array.dtype == expected.dtype
        assert array.tolist() == wanted.tolist()
    assert [part.tolist() for (part,) in data.batches(2)] == [expected[:2].tolist(), expected[2:].tolist()]


def test_nothing_is_copied() -> None:
    array = np.arange(6).reshape(3, 2)
    data = Dataset(array)
    assert np.shares_memory(data.arrays[0], array)
    assert not data.arrays[0].flags.writeable
    array[0, 0] = 7
    assert data[0][0].tolist() == [7, 1]


def test_samples_by_name() -> None:
    data = Dataset(x=np.arange(6.0).reshape(3, 2), y=[2, 1, 0])
    assert {name: array.tolist() for name, array in data[1].items()} == {"x": [2.0, 3.0], "y": 1}
    assert list(data.arrays) == ["x", "y"]
    assert repr(data) == "Dataset(x=float64[3, 2], y=int64[3])"
    batches = [{name: array.tolist() for name, array in batch.items()} for batch in data.batches(2)]
    assert batches == [{"x": [[0.0, 1.0], [2.0, 3.0]], "y": [2, 1]}, {"x": [[4.0, 5.0]], "y": [0]}]


def test_no_samples() -> None:
    data = Dataset([], np.zeros((0, 3)))
    assert len(data) == 0
    assert data[:][1].shape == (0, 3)
    with pytest.raises(DomainError, match="batches: expected a data set of at least one sample, got 0"):
        data.batches(2)


ONES = np.ones(2)
WAY = "convert them with astype, columns of several types one by one"
REFUSED: list[tuple[Callable[[], Any], type[DgrrError], str]] = [
    (lambda: Dataset(3.0), ShapeError, "Dataset: array 0: expected an axis of samples, got shape ()"),
    (lambda: Dataset(y=3), ShapeError, "Dataset: array 'y': expected an axis of samples, got shape ()"),
    (lambda: Dataset(x=ONES, y=[1]), ShapeError, "Dataset: array 'y': expected 2 samples, got 1"),
    (
        lambda: Dataset(ONES, [[1, 2], [3]]),
        ShapeError,
        "Dataset: array 1: expected samples of one shape, got parts of different shapes; pad or cut them to one",
    ),
    (
        lambda: Dataset(np.array([1, "a"], dtype=object)),
        DTypeError,
        f"Dataset: array 0: expected numbers, got Python objects (ndarray); {WAY}",
    ),
    (
        lambda: Dataset([1, None]),
        DTypeError,
        f"Dataset: array 0: expected numbers, got Python objects (list); {WAY}",
    ),
    (
        lambda: Dataset({"x": ONES}),  # type: ignore[arg-type]
        DTypeError,
        "Dataset: array 0: expected numbers, got Python objects (dict); pass its arrays by name: Dataset(**arrays)",
    ),
    (
        lambda: Dataset(iter([1, 2])),  # type: ignore[arg-type]
        DTypeError,
        "Dataset: array 0: expected numbers, got Python objects (list_iterator); "
        "read what comes one by one with Stream",
    ),
    (
        lambda: Dataset(np.ma.masked_array([1, 2], [False, True])),
        DTypeError,
        "Dataset: array 0: expected numbers, got a masked array; fill or leave out what is masked",
    ),
    (
        lambda: Dataset(ONES, x=ONES),  # type: ignore[call-overload]
        DomainError,
        "Dataset: expected arrays in turn or by name, got both",
    ),
]


@pytest.mark.parametrize(("make", "kind", "text"), REFUSED)
def test_what_is_refused(make: Callable[[], Any], kind: type[DgrrError], text: str) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert str(caught.value) == text


def halved(x: Any, y: Any, random: Any) -> Any:
    return x / 2 + random.uniform(), y


def sequence(batches: Any) -> list[Any]:
    return [[part.tolist() for part in batch] for batch in batches]


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("copied", COPIES)
def test_copies_go_on_alike_and_cannot_be_written_through(copied: str) -> None:
    data = Dataset(np.arange(7.0), np.arange(7)).shuffle(1).map(halved, seed=2)
    batches = data.batches(3, seed=0).prefetch(2)
    first = sequence(batches)
    other = COPIES[copied](batches)
    assert sequence(other) == sequence(batches) != first
    again = COPIES[copied](Dataset(np.arange(7.0)))
    assert repr(again) == "Dataset(float64[7])"
    with pytest.raises(ValueError, match="read-only"):
        again.arrays[0][0] = 7
    assert sequence(COPIES[copied](data).batches(3).epoch(2)) == sequence(data.batches(3).epoch(2))


def test_what_they_are_called() -> None:
    data = Dataset(np.zeros((6, 2), np.float32), np.arange(6))
    assert repr(data.take(4).map(halved, seed=2)) == "Dataset(float32[4, 2], int64[4]).map(halved, seed=2)"
    assert repr(data.batches(2)) == "Batches(Dataset(float32[6, 2], int64[6]), 2)"
    text = "Batches(Dataset(float32[6, 2], int64[6]), 2, seed=3, drop_last=True)"
    assert repr(data.batches(2, seed=3, drop_last=True)) == text


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5])
def test_seeds_out_of_range(seed: Any) -> None:
    for op, make in (
        ("batches", lambda: Dataset(ONES).batches(2, seed=seed)),
        ("map", lambda: Dataset(ONES).map(abs, seed=seed)),
        ("permutation", lambda: Dataset(ONES).shuffle(seed)),
        ("permutation", lambda: Dataset(ONES).split(1, seed=seed)),
    ):
        with pytest.raises(DomainError) as caught:
            make()
        assert str(caught.value) == f"{op}: argument 'seed': expected an integer from 0 to {2**64 - 1}, got {seed}"
