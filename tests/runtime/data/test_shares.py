"""Shares: what several ranks read of the same batches, each only its own."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.data import Dataset, Epochs, Stream
from dgrr.runtime.data.shares import of_groups
from dgrr.tape import DomainError

KINDS: dict[str, Callable[[Dataset[Any]], Epochs[Any]]] = {
    "in order": lambda data: data.batches(3),
    "shuffled": lambda data: data.batches(3, seed=7),
    "ahead": lambda data: data.batches(3, seed=7).prefetch(2),
    "stream": lambda data: Stream(lambda: (data[i] for i in range(len(data)))).batches(3),
}


def ranges(count: int, size: int) -> list[range]:
    return [range(count * rank // size, count * (rank + 1) // size) for rank in range(size)]


def sequence(batches: Iterator[Any]) -> list[list[int]]:
    return [labels.tolist() for (labels,) in batches]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_shares_of_all_ranks_are_the_batches_of_whole_steps(kind: str, size: int) -> None:
    """22 samples are 8 batches, of which 3 in turn are a step: two are left out, or a rest."""
    batches = KINDS[kind](Dataset(np.arange(22)))
    every = sequence(batches.epoch(1))
    owned = [sequence(batches.share(3, own).epoch(1)) for own in ranges(3, size)]
    for step in (every[:3], every[3:6]):
        assert [of_rank.pop(0) for of_rank, own in zip(owned, ranges(3, size), strict=True) for _ in own] == step
    assert owned == [[]] * size
    rests = [sequence(batches.share(3, own, rest=True).epoch(1)) for own in ranges(3, size)]
    assert sorted(batch for rest in rests for batch in rest) == sorted(every)


@pytest.mark.parametrize("kind", ["in order", "shuffled", "ahead"])
def test_no_rank_reads_a_sample_of_another(kind: str) -> None:
    """The functions of a data set are called when a sample is read: all are read, each by one rank."""
    read = list[int]()

    def note(x: Any) -> Any:
        read.append(int(x))
        return x

    noted = Dataset(np.arange(24)).map(note)
    for own in ranges(4, 3):
        before = len(read)
        own_samples = [x for batch in sequence(KINDS[kind](noted).share(4, own).epoch(0)) for x in batch]
        assert read[before:] == own_samples
    assert sorted(read) == list(range(24))


def test_a_share_counts_its_batches_and_its_epochs() -> None:
    batches = Dataset(np.arange(22)).batches(3, seed=7)
    share = batches.share(3, range(1, 3))
    assert len(share) == 4
    assert sequence(iter(share)) != sequence(iter(share)) == sequence(share.epoch(1))
    assert sequence(iter(batches)) == sequence(batches.epoch(2))  # epochs are counted there
    assert repr(share) == "Batches(Dataset(int64[22]), 3, seed=7).share(3, range(1, 3))"
    with pytest.raises(TypeError, match="has no length; iterate it"):
        len(Stream([1, 2]).batches(1).share(2, [0]))


def test_together_is_a_whole_number() -> None:
    with pytest.raises(DomainError, match="share: together: expected a whole number of at least 1, got 0"):
        Dataset(np.arange(3)).batches(1).share(0, [0])


def test_groups_of_any_iterator() -> None:
    assert list(of_groups(iter(range(7)), 3, [0, 2])) == [0, 2, 3, 5]
    assert list(of_groups(iter(range(7)), 3, [0, 2], rest=True)) == [0, 2, 3, 5, 6]


def test_a_digest_tells_data_sets_apart() -> None:
    x, y = np.arange(12.0).reshape(6, 2), np.arange(6)
    data = Dataset(x, y)
    others = [
        Dataset(x + 1, y),
        Dataset(x.astype(np.float32), y),
        Dataset(x.reshape(6, 1, 2), y),
        Dataset(x=x, y=y),
        data.take(5),
        data.shuffle(seed=0),
        data.map(np.add),
        data.map(np.add, seed=0),
    ]
    assert data.digest() == Dataset(x.copy(order="F"), y.tolist()).digest()
    assert len({each.digest() for each in (data, *others)}) == 9
    batches = [data.batches(2), data.batches(3), data.batches(2, seed=0), data.batches(4, drop_last=True)]
    assert len({each.digest() for each in batches}) == 4
    assert data.batches(2).prefetch().digest() == batches[0].digest()
    assert Stream([1]).digest() == "Stream"


def test_a_large_array_counts_by_some_of_its_samples() -> None:
    large = np.lib.stride_tricks.as_strided(np.zeros(1 << 10), (1 << 20, 1 << 10), (0, 8))  # 8 GiB that are none
    assert Dataset(large).digest() == Dataset(large).digest() != Dataset(large[1:]).digest()
