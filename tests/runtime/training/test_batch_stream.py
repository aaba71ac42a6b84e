"""What a fit has left to do, and what it reads of its batches to go on."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.runtime.data import Batches, Dataset, Epochs, Stream
from dgrr.runtime.training.batch_stream import Cursor, Feed, Take
from dgrr.tape import DomainError

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


def counted(there: Feed, take: Take, most: int = 1) -> Iterator[Any]:
    """The batches of an epoch, those of so many steps at a time."""
    while batches := take(most):
        assert len(batches) <= most
        yield from batches
        there.count_steps(len(batches))


@pytest.mark.parametrize("most", [1, 2, 50])
@pytest.mark.parametrize("batches", [list(range(5)), Dataset(np.arange(9)).batches(2, seed=4)], ids=["list", "data"])
@pytest.mark.parametrize(("options", "cursor", "left"), LEFT)
def test_how_many_steps_are_left(
    options: dict[str, Any], cursor: Cursor, left: int | None, batches: Any, most: int
) -> None:
    there = feed(batches, cursor, **options)
    assert there.left == left
    assert sum(len(list(counted(there, take, most))) for _, take in there.epochs()) == left


def test_without_a_length_only_steps_are_known() -> None:
    assert feed(iter([1, 2]), Cursor()).left is None
    assert feed(iter([1, 2]), Cursor(), steps=2).left == 2
    stream = Stream([1, 2]).batches(1)
    for batches in (stream, stream.prefetch(1)):
        assert feed(batches, Cursor()).left is None
        assert feed(batches, Cursor(), steps=2).left == 2
    assert feed(Dataset([1, 2]).batches(1).prefetch(1), Cursor(), epochs=3).left == 6


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


class Own(Epochs[Any]):
    """Epochs of a user, which count their batches in the body of a generator."""

    def __init__(self, samples: Callable[[Any], Any]) -> None:
        self.samples = samples

    def epoch(self, k: int) -> Iterator[Any]:
        for n in range(4):
            yield (self.samples(np.array([10 * k + n])),)


SOURCES: dict[str, Callable[[Callable[[Any], Any]], Epochs[Any]]] = {
    "map": lambda noted: Dataset(np.arange(10)).map(noted).batches(3, seed=2),
    "part": lambda noted: Dataset(np.arange(20)).shuffle(1).map(noted).split(0.5, seed=3)[0].batches(3, seed=2),
    "stream": lambda noted: Stream(range(10)).map(noted).batches(3, seed=2, buffer=4),
    "own": Own,
}


@pytest.mark.parametrize("ahead", [None, 1])
@pytest.mark.parametrize("source", SOURCES)
def test_epochs_before_are_not_read(source: str, ahead: int | None) -> None:
    reads = list[int]()

    def noted(x: Any) -> Any:
        reads.append(int(x[0]) if x.ndim else int(x))
        return x

    def batches() -> Epochs[Any]:
        made = SOURCES[source](noted)
        return made if ahead is None else made.prefetch(ahead)

    whole = [[b.tolist() for (b,) in batches().epoch(k)] for k in range(4)]
    an_epoch = len(reads) // 4
    assert an_epoch >= 4
    reads.clear()
    there = feed(batches(), Cursor(epoch=2, taken=1, steps=9), epochs=4)
    assert [(k, [b.tolist() for (b,) in counted(there, epoch)]) for k, epoch in there.epochs()] == [
        (2, whole[2][1:]),
        (3, whole[3]),
    ]
    assert len(reads) == 2 * an_epoch


def test_a_fit_begins_with_its_own_first_epoch_whatever_was_iterated() -> None:
    batches = Dataset(np.arange(10)).batches(3, seed=2).prefetch(1)
    list(batches)
    for _ in range(2):
        there = feed(batches, Cursor(), epochs=1)
        seen = [[b.tolist() for (b,) in counted(there, epoch)] for _, epoch in there.epochs()]
        assert seen == [[b.tolist() for (b,) in Dataset(np.arange(10)).batches(3, seed=2).epoch(0)]]


def test_a_used_up_generator_says_the_way_out() -> None:
    there = feed(Stream(iter([1, 2])).batches(1), Cursor(), epochs=2)
    with pytest.raises(DomainError, match="pass the function that makes it: Stream"):
        [list(counted(there, epoch)) for _, epoch in there.epochs()]


# What is no batches.

X, Y = np.zeros((6, 2)), np.zeros(6)
TUPLE = "a tuple of arrays; pass Dataset({}).batches(64, seed=0), or a list if each array is a batch"
REFUSED: list[tuple[Any, str]] = [
    (Dataset(X, Y), "a Dataset, which gives samples; pass dataset.batches(64, seed=0)"),
    ((X, Y), TUPLE.format("X, Y")),
    ((X,), TUPLE.format("X")),
    ((X, Y, Y), TUPLE.format("X, Y, …")),
    (X, "an array; pass Dataset(X).batches(64, seed=0)"),
    ({"x": X}, "a dict of 'x'; pass batches, or [batch] for one"),
]


@pytest.mark.parametrize(("given", "text"), REFUSED, ids=["Dataset", "(X, Y)", "(X,)", "(X, Y, Y)", "X", "dict"])
def test_samples_are_not_taken_for_batches(given: Any, text: str) -> None:
    trainer = Trainer(lambda p, batch: p["w"].sum(), {"w": np.zeros(2)}, SGD(0.5))
    with pytest.raises(DomainError) as caught:
        trainer.fit(given)
    assert str(caught.value) == f"fit: argument 'batches': expected batches, got {text}"
    assert trainer.steps == 0


@pytest.mark.parametrize("batches", [[(X, Y)], ((X, Y), (X, Y)), [X], [[X, Y]], Dataset(X, Y).batches(3)], ids=str)
def test_batches_of_every_form_are_taken(batches: Any) -> None:
    trainer = Trainer(lambda p, batch: p["w"].sum(), {"w": np.zeros(2)}, SGD(0.5))
    assert trainer.fit(batches).steps == len(batches)
