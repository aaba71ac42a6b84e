"""Streams: samples from functions, epoch after epoch, in batches, shuffled in a buffer."""

import pickle
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.data import Dataset, LengthError, SampleRandom, Stream
from dgrr.tape import DgrrError, DomainError, DTypeError, ShapeError
from dgrr.tape.numerics.math.philox import philox

pytestmark = pytest.mark.quick


def seven() -> Iterator[tuple[int, float]]:
    for k in range(7):
        yield k, k / 2


def flat(lists: Any) -> list[Any]:
    return list(chain.from_iterable(lists))


def sequence(batches: Any) -> list[list[int]]:
    return [batch[0].tolist() for batch in batches]


def test_batches_epoch_after_epoch() -> None:
    batches = Stream(seven).batches(3)
    for _ in range(2):
        assert [[part.tolist() for part in batch] for batch in batches] == [
            [[0, 1, 2], [0.0, 0.5, 1.0]],
            [[3, 4, 5], [1.5, 2.0, 2.5]],
            [[6], [3.0]],
        ]
    assert sequence(Stream(seven).batches(3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert sequence(Stream(seven).batches(7)) == sequence(Stream(seven).batches(7, drop_last=True))
    assert sequence(batches.epoch(9)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert [part.dtype for part in next(iter(batches))] == [np.int64, np.float64]


def test_the_function_is_called_once_an_epoch_and_not_before_its_first_batch() -> None:
    calls = list[int]()

    def noted() -> Iterator[int]:
        calls.append(len(calls))
        return iter(range(4))

    batches = Stream(noted).batches(2)
    for _ in range(5):
        iter(batches)
        iter(batches.stream)
    assert calls == []
    assert sequence(batches) == sequence(batches) == [[0, 1], [2, 3]]
    assert calls == [0, 1]


def test_no_more_is_read_than_a_batch_needs() -> None:
    read = list[int]()

    def noted() -> Iterator[int]:
        for k in range(100):
            read.append(k)
            yield k

    next(iter(Stream(noted).batches(4)))
    assert read == [0, 1, 2, 3]
    next(iter(Stream(noted).batches(4, seed=0, buffer=10)))
    assert len(read) == 4 + 14


FORMS: dict[str, tuple[Any, Any]] = {
    "numbers": (range(2), ([0, 1],)),
    "arrays": ([np.ones(2), np.zeros(2)], ([[1.0, 1.0], [0.0, 0.0]],)),
    "lists": ([[1, 2], [3, 4]], ([[1, 2], [3, 4]],)),
    "tuples": ([(1, [2, 3]), (4, [5, 6])], ([1, 4], [[2, 3], [5, 6]])),
    "dicts": ([{"x": 1}, {"x": 2}], {"x": [1, 2]}),
    "a data set": (Dataset([1, 2], [3, 4]), ([1, 2], [3, 4])),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_samples(form: str) -> None:
    given, expected = FORMS[form]
    (batch,) = Stream(given).batches(2)
    got = {k: v.tolist() for k, v in batch.items()} if isinstance(batch, dict) else tuple(v.tolist() for v in batch)
    assert got == expected


def test_batches_that_come_ready_are_left_alone() -> None:
    ready = [(np.arange(3), "any"), (np.arange(2), "thing")]
    stream = Stream(lambda: iter(ready))
    for given in (stream, stream.epoch(3), stream.prefetch(1)):
        assert all(a is b for a, b in zip(given, ready, strict=True))


# ------------------------------------------------------------------ the buffer


def slow_shuffle(n: int, buffer: int, seed: int, epoch: int) -> list[int]:
    """As docs/numerics.md states it: the number of exchange i is the first two words of its block."""
    numbers = list[int]()
    for i in range(n):
        words = philox(tuple(np.array([w], np.uint64) for w in (255 << 24, i, 2**32 - 2, epoch)), (seed, 0))  # type: ignore[arg-type]
        numbers.append(int(words[0][0]) + (int(words[1][0]) << 32))
    held, left, came = list(range(min(n, buffer))), list[int](), list(range(buffer, n))
    for number in numbers:
        place = number % len(held)
        left.append(held[place])
        held[place] = came.pop(0) if came else held[-1]
        if len(left) + len(came) + len(held) > n:
            held.pop()
    return left


@pytest.mark.parametrize(("n", "buffer"), [(7, 3), (7, 1), (7, 7), (7, 100), (1500, 40), (0, 3)])
@pytest.mark.parametrize("epoch", [0, 5])
def test_a_buffer_shuffles_by_seed_and_epoch(n: int, buffer: int, epoch: int) -> None:
    batches = Stream(range(n)).batches(4, seed=3, buffer=buffer)
    order = flat(sequence(batches.epoch(epoch)))
    assert sorted(order) == list(range(n))
    assert order == slow_shuffle(n, buffer, 3, epoch)
    assert (order == list(range(n))) == (buffer == 1 or n == 0)


def test_epochs_and_seeds_shuffle_differently() -> None:
    batches = Stream(range(50)).batches(50, seed=0, buffer=20)
    orders = [tuple(sequence(batches)[0]) for _ in range(3)]
    orders.append(tuple(sequence(Stream(range(50)).batches(50, seed=1, buffer=20))[0]))
    assert len(set(orders)) == 4
    again = Stream(range(50)).batches(50, seed=0, buffer=20)
    assert [tuple(sequence(again)[0]) for _ in range(3)] == orders[:3]


def test_a_buffer_of_all_makes_every_order_as_likely() -> None:
    batches = Stream(range(3)).batches(3, seed=0, buffer=3)
    counts = Counter(tuple(sequence(batches)[0]) for _ in range(600))
    assert len(counts) == 6
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 20.5  # chi-square, 5 degrees: p = 1e-3


# ------------------------------------------------------------------ maps


def noisy(x: Any, random: SampleRandom) -> Any:
    return x + random.uniform((), np.float64)


def test_maps_draw_by_the_place_in_the_epoch() -> None:
    plain = Stream(range(9))
    assert list(plain) == list(range(9))
    stream = plain.map(lambda x: x * 10).map(noisy, seed=4)
    assert [x for (x,) in stream] == [x for (x,) in stream.epoch(0)], "a stream of another one begins anew"
    for k in (0, 3):
        expected = {10 * i + SampleRandom(4, k, i, use=1).uniform((), np.float64) for i in range(9)}
        assert set(flat(sequence(stream.batches(2).epoch(k)))) == expected
        assert set(flat(sequence(stream.batches(4, seed=1, buffer=5).prefetch(2).epoch(k)))) == expected


# ------------------------------------------------------------------ what cannot be


def test_a_generator_serves_one_epoch() -> None:
    batches = Stream(seven()).batches(4)
    assert sequence(batches) == [[0, 1, 2, 3], [4, 5, 6]]
    text = (
        "Stream: epoch 1: expected samples that can be iterated again, got a generator, which is used up "
        "after one epoch; pass the function that makes it: Stream(samples), not Stream(samples())"
    )
    with pytest.raises(DomainError) as caught:
        list(batches)
    assert str(caught.value) == text
    with pytest.raises(DomainError, match="Stream: epoch 0: expected samples that can be iterated again"):
        list(batches.epoch(0))
    with pytest.raises(DomainError, match="Stream: epoch 2: expected samples that can be iterated again"):
        list(Stream(seven()).batches(4).epoch(2))


def test_no_length() -> None:
    stream = Stream(seven).map(lambda *sample: sample)
    batches = Stream(seven).batches(2, seed=1, buffer=3)
    text = "has no length; iterate it, or bound a fit by its steps"
    name = "test_no_length.<locals>.<lambda>"
    for given, shown in (
        (stream, f"Stream(seven).map({name})"),
        (batches, "StreamBatches(Stream(seven), 2, seed=1, buffer=3)"),
        (batches.prefetch(2), "StreamBatches(Stream(seven), 2, seed=1, buffer=3)"),
    ):
        with pytest.raises(LengthError) as caught:
            len(given)  # type: ignore[arg-type]
        assert str(caught.value) == f"{shown} {text}"
    assert repr(Stream([1, 2]).batches(2, drop_last=True)) == "StreamBatches(Stream(list), 2, drop_last=True)"
    assert issubclass(LengthError, TypeError) and len(list(batches)) == 4, "list() asks for the length"


ALIKE = "as in the first sample of the batch"
LEAST = "expected a whole number of at least 1"
BOTH = "batches: expected both seed and buffer or neither"


def endless() -> None:
    pass


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (
            lambda: Stream(3),
            DomainError,
            "Stream: argument 'samples': expected a function that returns an iterator, or an iterable, got int",
        ),
        (
            lambda: list(Stream(endless).batches(2)),
            DomainError,
            "Stream: endless(): expected an iterator, got NoneType; yield samples",
        ),
        (lambda: Stream([1]).batches(0), DomainError, f"batches: size: {LEAST}, got 0"),
        (lambda: Stream([1]).batches("2"), DomainError, f"batches: size: {LEAST}, got '2'"),
        (
            lambda: Stream([1]).batches(2, seed=0, buffer=0),
            DomainError,
            f"batches: buffer: {LEAST}, got 0",
        ),
        (lambda: Stream([1]).batches(2, seed=0), DomainError, f"{BOTH}, got 0 and None"),
        (lambda: Stream([1]).batches(2, buffer=4), DomainError, f"{BOTH}, got None and 4"),
        (lambda: Stream([1]).epoch(-1), DomainError, "batches: epoch: expected at least 0, got -1"),
        (lambda: Stream([1]).batches(2).epoch(-1), DomainError, "batches: epoch: expected at least 0, got -1"),
        (
            lambda: list(Stream([[1], [1], [1], [1, 2]]).batches(2).epoch(5)),
            ShapeError,
            f"Stream(list): epoch 5: sample 3: array 0: expected shape (1,) {ALIKE}, got (2,); pad or cut it",
        ),
        (
            lambda: list(Stream([1, 2.5]).batches(2)),
            DTypeError,
            f"Stream(list): epoch 0: sample 1: array 0: expected int64 {ALIKE}, got float64; convert it",
        ),
    ],
)
def test_what_is_refused(make: Any, kind: type[DgrrError], text: str) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert str(caught.value) == text


def test_pickled_streams_go_on() -> None:
    for stream in (Stream(seven), Stream([4, 5, 6])):
        batches = stream.batches(2, seed=1, buffer=2)
        list(batches)
        again = pickle.loads(pickle.dumps(batches))
        assert sequence(again) == sequence(batches)
