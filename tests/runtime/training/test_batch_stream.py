"""What a fit has left to do, and what it reads of its batches to go on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.data import Batches, Dataset
from dgrr.runtime.training.batch_stream import Cursor, Feed

LEFT: list[tuple[dict[str, Any], Cursor, int | None]] = [
    ({"epochs": 2}, Cursor(), 10),
    ({"steps": None}, Cursor(), 5),
    ({"epochs": 2}, Cursor(1, 2, 7), 3),
    ({"epochs": 2, "accumulate": 2}, Cursor(), 4),
    ({"steps": 3, "epochs": 2}, Cursor(), 3),
    ({"steps": 30, "epochs": 2}, Cursor(0, 1, 1), 9),
    ({"steps": 30}, Cursor(0, 1, 1), 29),
    ({"epochs": 1}, Cursor(1, 2, 7), 0),
]


def feed(batches: Any, cursor: Cursor, **options: Any) -> Feed:
    given: dict[str, Any] = {"steps": None, "epochs": None, "accumulate": 1, **options}
    return Feed(batches, **given, cursor=cursor)


def counted(there: Feed, epoch: Iterator[Any]) -> Iterator[Any]:
    """The batches of an epoch, each one a step."""
    for batch in epoch:
        there.count_step()
        yield batch


@pytest.mark.parametrize(("options", "cursor", "left"), LEFT)
def test_how_many_steps_are_left(options: dict[str, Any], cursor: Cursor, left: int | None) -> None:
    there = feed(list(range(5)), cursor, **options)
    assert there.left == left
    assert sum(len(list(counted(there, epoch))) for _, epoch in there.epochs()) == left


def test_without_a_length_only_steps_are_known() -> None:
    assert feed(iter([1, 2]), Cursor()).left is None
    assert feed(iter([1, 2]), Cursor(), steps=2).left == 2


class Counted(Dataset):
    """Counts what is read."""

    read = 0

    def __getitem__(self, index: Any) -> Any:
        self.read += 1
        return super().__getitem__(index)


def test_batches_of_ours_are_not_read_to_pass_over_an_epoch() -> None:
    data = Counted(np.arange(10))
    whole = [[b.tolist() for (b,) in Batches(data, 3, seed=2).epoch(k)] for k in range(4)]
    data.read = 0
    there = feed(Batches(data, 3, seed=2), Cursor(epoch=2, taken=1, steps=9), epochs=4)
    assert [(k, [b.tolist() for (b,) in counted(there, epoch)]) for k, epoch in there.epochs()] == [
        (2, whole[2][1:]),
        (3, whole[3]),
    ]
    assert data.read == 8
