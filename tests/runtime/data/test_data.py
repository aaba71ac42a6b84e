"""The shipped digits against their source, data sets, and the order of batches."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import data as data_module
from dgrr.runtime.data import Batches, Dataset, digits
from dgrr.tape.errors import DomainError, ShapeError
from dgrr.tape.numerics.math.random import permutation

pytestmark = pytest.mark.quick

Array = npt.NDArray[Any]

FOLDER = Path(str(data_module.__file__)).parent

PIXELS_SHA256 = "8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3"
LABELS_SHA256 = "8ba4f891220f5e4c9c819638d1602d74b83618f167043c6da52a2a247841ddf0"
"""Of the bytes of sklearn.datasets.load_digits(): the 1797 * 64 pixels, and the 1797 labels, a byte each."""


def numbers(n: int) -> Dataset:
    return Dataset(np.arange(n), np.arange(n) * 10.0)


def sequence(batches: Any) -> list[list[int]]:
    return [first.tolist() for first, _ in batches]


def test_the_shipped_bytes_are_those_of_the_source() -> None:
    with np.load(FOLDER / "digits.npz", allow_pickle=False) as archive:
        assert sorted(archive) == ["images", "labels"]
        images, labels = archive["images"], archive["labels"]
    assert images.shape == (1797, 8, 8)
    assert labels.shape == (1797,)
    assert images.dtype == labels.dtype == np.uint8
    assert hashlib.sha256(images.tobytes()).hexdigest() == PIXELS_SHA256
    assert hashlib.sha256(labels.tobytes()).hexdigest() == LABELS_SHA256


def test_the_attribution_is_shipped() -> None:
    text = (FOLDER / "ATTRIBUTION.md").read_text("utf-8")
    for part in ("E. Alpaydin", "C. Kaynak", "https://doi.org/10.24432/C50P49", "CC BY 4.0", "scikit-learn"):
        assert part in text


def test_digits_are_the_source_split_by_the_stated_rule() -> None:
    train, test = digits()
    assert (len(train), len(test)) == (1442, 355)
    (train_images, train_labels), (test_images, test_labels) = train.arrays, test.arrays
    with np.load(FOLDER / "digits.npz", allow_pickle=False) as archive:
        order: list[int] = archive["labels"].tolist()
    trained, tested = zip(*train.arrays, strict=True), zip(*test.arrays, strict=True)
    pixels, labels, seen = b"", b"", [0] * 10
    for label in order:
        image, target = next(tested if seen[label] % 5 == 4 else trained)
        seen[label] += 1
        pixels += bytes(int(x * 16) for x in image)
        labels += bytes([int(target)])
    assert list(trained) == list(tested) == []
    assert hashlib.sha256(pixels).hexdigest() == PIXELS_SHA256
    assert hashlib.sha256(labels).hexdigest() == LABELS_SHA256
    assert train_images.dtype == test_images.dtype == np.float32
    assert train_labels.dtype == test_labels.dtype == np.int64
    assert test_images.shape == (355, 64)
    assert train_images.min() == 0
    assert train_images.max() == 1


def test_digits_are_balanced() -> None:
    for dataset, low, high in ((digits()[0], 140, 147), (digits()[1], 34, 36)):
        counts = np.bincount(dataset.arrays[1])
        assert len(counts) == 10
        assert low <= counts.min() <= counts.max() <= high


def test_dataset() -> None:
    images, labels = np.arange(12.0).reshape(4, 3), np.arange(4)
    dataset = Dataset(images, labels)
    assert len(dataset) == 4
    assert [part.tolist() for part in dataset[1]] == [[3, 4, 5], 1]
    assert [part.tolist() for part in dataset[-2:]] == [[[6, 7, 8], [9, 10, 11]], [2, 3]]
    assert [part.tolist() for part in dataset[np.array([3, 0])]] == [[[9, 10, 11], [0, 1, 2]], [3, 0]]
    assert repr(dataset) == "Dataset(float64[4, 3], int64[4])"
    with pytest.raises(IndexError):
        dataset[4]


def test_a_dataset_cannot_be_written_through() -> None:
    labels = np.arange(4)
    batch = next(iter(Dataset(labels).batches(2)))
    with pytest.raises(ValueError, match="read-only"):
        batch[0][0] = 7
    labels[0] = 9
    assert labels[0] == 9


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ((), "Dataset: expected at least one array, got none"),
        ((np.zeros(3), np.zeros(())), "Dataset: array 1: expected an axis of samples, got shape ()"),
        ((np.zeros((3, 2)), np.zeros(2)), "Dataset: array 1: expected 3 samples, got 2"),
    ],
)
def test_bad_datasets(arrays: tuple[Array, ...], text: str) -> None:
    with pytest.raises(ShapeError) as caught:
        Dataset(*arrays)
    assert str(caught.value) == text


def test_batches_in_order() -> None:
    assert sequence(numbers(5).batches(2)) == [[0, 1], [2, 3], [4]]
    assert sequence(numbers(5).batches(2, drop_last=True)) == [[0, 1], [2, 3]]
    assert sequence(numbers(4).batches(2, drop_last=True)) == [[0, 1], [2, 3]]
    assert sequence(numbers(3).batches(9)) == [[0, 1, 2]]


@pytest.mark.parametrize(("n", "size", "drop_last"), [(7, 3, False), (7, 3, True), (6, 3, True), (6, 3, False)])
def test_len_counts_the_batches(n: int, size: int, drop_last: bool) -> None:
    batches = numbers(n).batches(size, drop_last=drop_last)
    assert len(batches) == len(sequence(batches))


def test_shuffled_epochs() -> None:
    dataset = numbers(23)
    batches = dataset.batches(5, seed=3)
    epochs = [sequence(batches) for _ in range(3)]
    for k, epoch in enumerate(epochs):
        order = [i for batch in epoch for i in batch]
        assert order == permutation(23, seed=3, step=k).tolist()
        assert sorted(order) == list(range(23))
        assert [len(batch) for batch in epoch] == [5, 5, 5, 5, 3]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert [sequence(fresh) for fresh in [dataset.batches(5, seed=3)] for _ in range(3)] == epochs
    assert sequence(dataset.batches(5, seed=4)) != epochs[0]


def test_arrays_stay_together_when_shuffled() -> None:
    for first, second in numbers(23).batches(4, seed=0):
        assert np.array_equal(first * 10.0, second)


def test_the_first_batch_of_a_fresh_object_is_that_of_epoch_0() -> None:
    dataset = numbers(23)
    first = next(iter(dataset.batches(5, seed=3)))[0].tolist()
    assert first == next(dataset.batches(5, seed=3).epoch(0))[0].tolist()
    assert first == permutation(23, seed=3, step=0)[:5].tolist()


def test_an_epoch_begun_counts_and_an_explicit_one_does_not() -> None:
    dataset = numbers(23)
    batches = dataset.batches(5, seed=3)
    iter(batches)
    explicit = sequence(batches.epoch(7))
    assert sequence(batches) == sequence(dataset.batches(5, seed=3).epoch(1))
    assert explicit == sequence(dataset.batches(5, seed=3).epoch(7))


def test_drop_last_drops_by_the_order_of_the_epoch() -> None:
    kept = sequence(numbers(7).batches(3, seed=1, drop_last=True))
    assert kept == [permutation(7, seed=1)[:3].tolist(), permutation(7, seed=1)[3:6].tolist()]


@pytest.mark.parametrize(
    ("n", "size", "drop_last", "text"),
    [
        (3, 0, False, "batches: size: expected a whole number of at least 1, got 0"),
        (3, 1.5, False, "batches: size: expected a whole number of at least 1, got 1.5"),
        (3, 4, True, "batches: expected a data set of at least 4 samples, got 3: no batch would be left"),
        (0, 4, False, "batches: expected a data set of at least one sample, got 0: no batch would be left"),
    ],
)
def test_bad_batches(n: int, size: Any, drop_last: bool, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        Batches(numbers(n), size, drop_last=drop_last)
    assert str(caught.value) == text


def test_negative_epoch() -> None:
    with pytest.raises(DomainError) as caught:
        numbers(3).batches(2).epoch(-1)
    assert str(caught.value) == "batches: epoch: expected at least 0, got -1"
