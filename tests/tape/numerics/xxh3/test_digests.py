"""XXH3-128 by kernels against the package xxhash, on any length, place and number of threads."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xxhash

from dgrr.tape import get_threads, set_threads
from dgrr.tape.numerics.prepared.places import place_of
from dgrr.tape.numerics.prepared.prepared_calls import PreparedCalls
from dgrr.tape.numerics.xxh3.digests import LONG, Digests, Message
from dgrr.tape.numerics.xxh3.message import MOST_HEAD

RNG = np.random.default_rng(7)
NOISE = RNG.integers(0, 256, 1 << 20, dtype=np.uint8)

Bytes = npt.NDArray[np.uint8]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = get_threads()
    yield
    set_threads(before)


def digests_of(pairs: Sequence[tuple[Bytes, Any]]) -> list[bytes]:
    """The digests of heads and arrays, made in one call."""
    outs = np.zeros((len(pairs), 16), np.uint8)
    messages = [Message(head, data.nbytes, out, place_of(data)) for (head, data), out in zip(pairs, outs, strict=True)]
    assert PreparedCalls(Digests(messages)).run() == 0
    return [out.tobytes() for out in outs]


def part(at: int, length: int) -> Bytes:
    return NOISE[at : at + length]


def require_right(pairs: Sequence[tuple[Bytes, Any]]) -> None:
    expected = [xxhash.xxh3_128_digest(head.tobytes() + data.tobytes()) for head, data in pairs]
    assert digests_of(pairs) == expected


def test_every_length_of_each_formula() -> None:
    require_right([(part(0, 0), part(n, n)) for n in range(1300)])


def test_a_hundred_thousand_lengths_and_places() -> None:
    for _ in range(100):
        heads = 8 * RNG.integers(0, MOST_HEAD // 8 + 1, 1000)
        lengths = RNG.integers(0, 2 ** RNG.integers(1, 15, 1000))
        places = RNG.integers(0, len(NOISE) - 2**15, (2, 1000))
        columns = zip(*places.tolist(), heads.tolist(), lengths.tolist(), strict=True)
        require_right([(part(i, head), part(k, length)) for i, k, head, length in columns])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_long_arrays_shared_among_threads(count: int) -> None:
    set_threads(count)
    lengths = (LONG - 1, LONG, LONG + 1, 5 * LONG + 960, 3, 0, 3 * LONG - 16, 3 * LONG - 15, 100)
    require_right([(part(i, 16), part(i, length)) for i, length in enumerate(lengths)])


def test_the_number_of_threads_may_change_between_two_runs() -> None:
    head, data, out = part(0, 24), part(5, 4 * LONG), np.zeros(16, np.uint8)
    made = PreparedCalls(Digests([Message(head, data.nbytes, out, place_of(data))]))
    for count in (1, 2, 1, 3):
        set_threads(count)
        out[:] = 0
        assert made.run() == 0
        assert out.tobytes() == xxhash.xxh3_128_digest(head.tobytes() + data.tobytes())


def test_digests_of_the_digests_before() -> None:
    digests = np.zeros(8 + 3 * 16, np.uint8)
    places = [digests[8 + 16 * i :][:16] for i in range(3)]
    root, copy = np.zeros(16, np.uint8), np.zeros(16, np.uint8)
    parts = [part(7 * i, 100 * i) for i in range(3)]
    inputs = [Message(part(0, 0), p.nbytes, out, place_of(p), copy) for p, out in zip(parts, places, strict=True)]
    joined = Message(part(0, 0), digests.nbytes, root, place_of(digests))
    assert PreparedCalls(Digests(inputs), Digests([joined])).run() == 0
    expected = [xxhash.xxh3_128_digest(p.tobytes()) for p in parts]
    assert root.tobytes() == xxhash.xxh3_128_digest(bytes(8) + b"".join(expected))
    assert copy.tobytes() == expected[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 2])
def test_the_first_array_with_an_infinity_or_nan_is_named(dtype: type[np.floating[Any]], count: int) -> None:
    set_threads(count)
    largest = np.finfo(dtype).max
    for n in (1, 7, 27, 28, 55, 56, 57, 250, 300, 5000, 40000):
        arrays = [np.full(n, sign * largest, dtype) for sign in (1, -1, 1)]
        head, outs = part(0, 16), np.zeros((3, 16), np.uint8)
        pairs = zip(arrays, outs, strict=True)
        made = PreparedCalls(Digests([Message(head, a.nbytes, o, place_of(a), numbers=a.dtype) for a, o in pairs]))
        assert made.run() == 0
        for i in (2, 1, 0):
            for k in {0, n // 2, n - 1}:
                for value in (np.inf, -np.inf, np.nan, -np.nan):
                    arrays[i][k] = value
                    assert made.run() == 1 + i
                    arrays[i][k] = largest
            assert made.run() == (i + 2) % 4  # the next one, whose NaN stays, or none
            arrays[i][0] = np.nan


def test_too_long_a_head_is_refused() -> None:
    out = np.zeros(16, np.uint8)
    with pytest.raises(ValueError, match="^Message: head: expected at most 960 bytes, got 968$"):
        Digests([Message(part(0, 968), 8, out, place_of(out))])


def test_other_dtypes_have_no_nan() -> None:
    data, out = np.full(100, -1, np.int64), np.zeros(16, np.uint8)
    message = Message(part(0, 0), data.nbytes, out, place_of(data), numbers=data.dtype)
    assert PreparedCalls(Digests([message])).run() == 0
