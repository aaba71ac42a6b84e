"""Data sets of other ones: the first samples, fixed shuffles, parts and folds."""

from itertools import chain
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.data import Dataset, digits
from dgrr.tape import DomainError, ShapeError
from dgrr.tape.numerics.math.random import permutation

pytestmark = pytest.mark.quick


def numbers(n: int) -> Dataset:
    return Dataset(np.arange(n), np.arange(n) * 10.0)


def flat(lists: Any) -> list[Any]:
    return list(chain.from_iterable(lists))


def values(data: Dataset) -> list[int]:
    """The samples, whose arrays must have stayed together."""
    first, second = data[:]
    assert (first * 10.0).tolist() == second.tolist()
    assert len(first) == len(data)
    return first.tolist()


TAKEN: list[tuple[Any, list[int]]] = [
    (3, [0, 1, 2]),
    (np.int64(2), [0, 1]),
    (0, []),
    (9, [0, 1, 2, 3, 4]),
    (slice(1, None, 2), [1, 3]),
    (slice(None, None, -1), [4, 3, 2, 1, 0]),
    ([3, -1, 3], [3, 4, 3]),
    ([], []),
    (np.array([True, False, False, True, False]), [0, 3]),
]


@pytest.mark.parametrize(("index", "expected"), TAKEN)
def test_take(index: Any, expected: list[int]) -> None:
    assert values(numbers(5).take(index)) == expected


def test_choices_of_choices() -> None:
    data = numbers(10).take(slice(None, None, -1)).take([0, 2, 4]).take(2)
    assert values(data) == [9, 7]
    assert [part.tolist() for part in data[1]] == [7, 70.0]
    assert data.arrays[0].tolist() == [9, 7]
    with pytest.raises(IndexError):
        data[2]
    assert [first.tolist() for first, _ in data.batches(1)] == [[9], [7]]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (-1, "take: argument 'index': expected a whole number of at least 0, got -1"),
        ([[0, 1]], "take: argument 'index': expected indices along one axis, got shape (1, 2)"),
    ],
)
def test_take_refuses(index: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        numbers(5).take(index)
    assert str(caught.value) == text


def test_take_beyond() -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        numbers(5).take([5])


def test_shuffle_is_one_permutation() -> None:
    data = numbers(23)
    assert values(data.shuffle(seed=3)) == permutation(23, seed=3, ordinal=1).tolist()
    assert values(data.shuffle(seed=4)) != values(data.shuffle(seed=3))
    assert values(data.shuffle(3)) != permutation(23, seed=3).tolist(), "an epoch of Batches"
    assert values(numbers(8).shuffle(0)) == [4, 0, 3, 6, 5, 2, 7, 1], "the same on every machine"


SPLIT: list[tuple[int, tuple[Any, ...], list[int]]] = [
    (10, (0.8,), [8, 2]),
    (10, (3,), [3, 7]),
    (10, (0.5, 0.3), [5, 3, 2]),
    (10, (0.7, 0.2, 0.1), [7, 2, 1]),
    (9, (1 / 3, 1 / 3, 1 / 3), [3, 3, 3]),
    (10, (1 / 3, 1 / 3, 1 / 3), [3, 4, 3]),
    (10, (4, 6), [4, 6]),
    (10, (np.int64(4), 5), [4, 5, 1]),
    (10, (np.float32(0.5),), [5, 5]),
    (2, (0.5,), [1, 1]),
    (1000, (0.29,), [290, 710]),
    (10, (0.15,), [2, 8]),
]


@pytest.mark.parametrize(("n", "shares", "sizes"), SPLIT)
@pytest.mark.parametrize("seed", [None, 0])
def test_split(n: int, shares: tuple[Any, ...], sizes: list[int], seed: int | None) -> None:
    parts = [values(part) for part in numbers(n).split(*shares, seed=seed)]
    assert [len(part) for part in parts] == sizes
    assert sorted(flat(parts)) == list(range(n))
    assert all(part == sorted(part) for part in parts)
    assert (flat(parts) == list(range(n))) == (seed is None or n == 2)


def test_split_is_a_cut_of_the_shuffle() -> None:
    data = numbers(20)
    shuffled = values(data.shuffle(seed=5))
    assert [values(part) for part in data.split(13, seed=5)] == [sorted(shuffled[:13]), sorted(shuffled[13:])]


RANGE = "split: argument 'shares': expected shares between 0 and 1, or counts of at least 1"


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ((), "split: expected at least one share or count, got none"),
        ((1.0,), f"{RANGE}, got 1.0"),
        ((0.5, 0.0), f"{RANGE}, got 0.5, 0.0"),
        ((0,), f"{RANGE}, got 0"),
        ((3, 0.5), f"{RANGE}, got 3, 0.5"),
        (("a",), f"{RANGE}, got a"),
        ((float("nan"),), f"{RANGE}, got nan"),
        ((0.7, 0.4), "split: expected no more than all 10 samples, got 0.7, 0.4"),
        ((4, 7), "split: expected no more than all 10 samples, got 4, 7"),
        ((0.01,), "split: expected at least one sample in every part, got parts of [0, 10]"),
        ((0.99,), "split: expected at least one sample in every part, got parts of [10, 0]"),
        ((10,), "split: expected at least one sample in every part, got parts of [10, 0]"),
    ],
)
def test_split_refuses(shares: tuple[Any, ...], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        numbers(10).split(*shares)
    assert str(caught.value) == text


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(("n", "k"), [(10, 2), (10, 3), (7, 7), (23, 5)])
def test_kfold(n: int, k: int, seed: int | None) -> None:
    pairs = numbers(n).kfold(k, seed=seed)
    tested = [values(test) for _, test in pairs]
    assert sorted(flat(tested)) == list(range(n))
    assert max(map(len, tested)) - min(map(len, tested)) <= 1
    for (train, _), test in zip(pairs, tested, strict=True):
        assert values(train) == [i for i in range(n) if i not in test]
    if seed is None:
        assert flat(tested) == list(range(n))


def test_kfold_of_a_part_stays_in_it() -> None:
    part = numbers(20).take(slice(10, None))
    assert sorted(flat(values(test) for _, test in part.kfold(3, seed=0))) == list(range(10, 20))
    with_twins = numbers(4).take([0, 0, 1, 1])
    assert [(values(a), values(b)) for a, b in with_twins.kfold(2)] == [([1, 1], [0, 0]), ([0, 0], [1, 1])]


@pytest.mark.parametrize("k", [1, 11, 2.0, "3"])
def test_kfold_refuses(k: Any) -> None:
    with pytest.raises(DomainError) as caught:
        numbers(10).kfold(k)
    assert str(caught.value) == f"kfold: argument 'k': expected a whole number from 2 to the 10 samples, got {k!r}"


def shares_of(part: Dataset, labels: Any) -> Any:
    return np.bincount(part.arrays[1], minlength=10) / np.bincount(labels)


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_every_part_has_each_class_in_proportion(seed: int | None) -> None:
    train, _ = digits()
    train = train.take(np.argsort(train.arrays[1], kind="stable"))
    labels = train.arrays[1]
    parts = train.split(0.6, 0.2, seed=seed, stratify=labels)
    assert [len(part) for part in parts] == [865, 289, 288]
    for part in (*parts, *(test for _, test in train.kfold(5, seed=seed, stratify=labels))):
        expected = len(part) / len(train)
        assert abs(shares_of(part, labels) - expected).max() <= 1.5 / 140
    assert abs(shares_of(train.take(865), labels) - 0.6).max() == 0.6


def test_rare_classes_are_spread() -> None:
    labels = ["a"] * 16 + ["b"] * 4
    for _, test in numbers(20).kfold(4, seed=2, stratify=labels):
        assert sum(value >= 16 for value in values(test)) == 1


def test_rare_classes_do_not_gather_in_the_first_part() -> None:
    first, rest = numbers(55).split(11, seed=0, stratify=[0] * 50 + [1, 2, 3, 4, 5])
    assert [sum(value >= 50 for value in values(part)) for part in (first, rest)] == [0, 5]
    assert sum(value >= 50 for value in values(numbers(55).split(33, stratify=[0] * 50 + [1, 2, 3, 4, 5])[0])) == 5


def test_classes_of_another_number() -> None:
    with pytest.raises(ShapeError) as caught:
        numbers(3).split(2, stratify=[0, 1])
    text = "expected a class for each of the 3 samples, shape (3,), got (2,)"
    assert str(caught.value) == f"split: argument 'stratify': {text}"


def test_names_stay() -> None:
    train, test = Dataset(x=[1, 2, 3], y=[4, 5, 6]).split(2)
    assert {name: array.tolist() for name, array in test.arrays.items()} == {"x": [3], "y": [6]}
    assert repr(train) == "Dataset(x=int64[2], y=int64[2])"
