"""Functions of samples: when they are called, what they get, and random numbers that depend on coordinates alone."""

import math
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.data import Dataset, SampleRandom, Stream
from dgrr.tape import DgrrError, DomainError, DTypeError, ShapeError
from dgrr.tape.numerics.math.philox import philox, words
from dgrr.tape.numerics.math.random import permutation

pytestmark = pytest.mark.quick

SEED = 0x299F31D0_A4093822
KEY = (0xA4093822, 0x299F31D0)
SAMPLES = 2**32 - 2


# ------------------------------------------------------------------ random numbers of one sample


def expected_words(n: int, epoch: int, sample: int, use: int) -> Any:
    """The words that docs/numerics.md states."""
    if use == 0:
        return words(KEY, (sample, SAMPLES, epoch), n)
    blocks = np.arange(-(-n // 4), dtype=np.uint64) + np.uint64(use << 24)
    rest = [np.full_like(blocks, word) for word in (sample, SAMPLES, epoch)]
    return np.stack(philox((blocks, rest[0], rest[1], rest[2]), KEY), axis=-1).astype(np.uint32).reshape(-1)[:n]


def joined(drawn: Any, n: int = 2) -> list[int]:
    return [sum(word << 32 * k for k, word in enumerate(words)) for words in drawn.reshape(-1, n).tolist()]


@pytest.mark.parametrize("use", [0, 1, 254])
@pytest.mark.parametrize("epoch", [0, 2**32 - 1])
@pytest.mark.parametrize("sample", [0, 3, 2**32 - 1])
def test_draws_are_made_of_the_stated_words_in_turn(use: int, epoch: int, sample: int) -> None:
    random = SampleRandom(SEED, epoch, sample, use)
    drawn = expected_words(3 + 4 + 20 + 100, epoch, sample, use)
    assert random.uniform((3,)).tolist() == [(w >> 8) * 2.0**-24 for w in drawn[:3].tolist()]
    assert random.uniform((2,), np.float64).tolist() == [(w >> 11) * 2.0**-53 for w in joined(drawn[3:7])]
    assert random.integers(-3, 4, (5,)).tolist() == [(w * 7 >> 128) - 3 for w in joined(drawn[7:27], 4)]
    assert (
        random.uniform((4, 25)).tolist()
        == np.reshape([(w >> 8) * 2.0**-24 for w in drawn[27:].tolist()], (4, 25)).tolist()
    )


def test_streams_of_samples_are_no_streams_of_steps_or_shuffles() -> None:
    seen = set[bytes]()
    for micro_batch in (0, 1, 2**32 - 3, SAMPLES, 2**32 - 1):
        for ordinal in (0, 1, 2):
            seen.add(words(KEY, (ordinal, micro_batch, 0), 8).tobytes())
    assert len(seen) == 15
    assert SampleRandom(SEED, 0, 1)._take(8).tobytes() == words(KEY, (1, SAMPLES, 0), 8).tobytes()


def test_normal_is_box_muller_of_pairs() -> None:
    pairs = SampleRandom(SEED, 0, 5).uniform((6, 2), np.float64).tolist()
    drawn = SampleRandom(SEED, 0, 5).normal((2, 3), np.float64)
    expected = [math.sqrt(-2 * math.log(1 - u)) * math.cos(math.tau * v) for u, v in pairs]
    assert np.allclose(drawn.reshape(-1), expected, rtol=1e-14, atol=1e-15)
    rounded = SampleRandom(SEED, 0, 5).normal((2, 3))
    assert rounded.tobytes() == drawn.astype(np.float32).tobytes()
    many = SampleRandom(1, 0, 0).normal((20_000,))
    assert abs(many.mean()) < 0.03
    assert abs(many.std() - 1) < 0.03


def test_scalars_and_empty_draws() -> None:
    random = SampleRandom(0, 0, 0)
    assert isinstance(random.uniform(), np.float32)
    assert isinstance(random.normal(dtype=np.float64), np.float64)
    assert isinstance(random.integers(0, 2), np.int64)
    assert random.uniform((0, 3)).shape == random.normal((0, 3)).shape == random.integers(0, 1, (0, 3)).shape == (0, 3)
    wide = random.integers(-(2**63), 2**63, (50,))
    assert wide.min() < -(2**61) and wide.max() > 2**61
    assert sorted(set(random.integers(0, 3, (100,)).tolist())) == [0, 1, 2]
    assert SampleRandom(0, 0, 0).integers(2**63 - 1, 2**63) == 2**63 - 1


FLOATS = "argument 'dtype': expected float32 or float64"


@pytest.mark.parametrize(
    ("draw", "kind", "text"),
    [
        (lambda r: r.uniform((), np.int64), DTypeError, f"uniform: {FLOATS}, got int64"),
        (lambda r: r.normal((), np.float16), DTypeError, f"normal: {FLOATS}, got float16"),
        (lambda r: r.normal(3), DomainError, "normal: argument 'shape': expected a tuple of sizes, got 3"),
        (
            lambda r: r.integers(0, 3, (2, -1)),
            DomainError,
            f"integers: argument 'shape': expected an integer from 0 to {2**26 - 1}, got -1",
        ),
        (
            lambda r: r.integers(3, 3),
            DomainError,
            "integers: expected low < high, both in int64, got 3 and 3",
        ),
        (
            lambda r: r._take(1 + 2**26),
            DomainError,
            f"map: expected at most {2**26} random words for one sample, got more",
        ),
        (
            lambda r: SampleRandom(0, 2**32, 0).uniform(),
            DomainError,
            f"map: argument 'epoch': expected an integer from 0 to {2**32 - 1}, got {2**32}",
        ),
        (
            lambda r: SampleRandom(0, 0, 2**32).uniform(),
            DomainError,
            f"map: argument 'index': expected an integer from 0 to {2**32 - 1}, got {2**32}",
        ),
    ],
)
def test_draws_refused(draw: Any, kind: type[DgrrError], text: str) -> None:
    with pytest.raises(kind) as caught:
        draw(SampleRandom(0, 0, 0))
    assert str(caught.value) == text


# ------------------------------------------------------------------ maps


def jittered(x: Any, y: Any, random: SampleRandom) -> Any:
    return x + random.normal(x.shape, np.float64), y + random.integers(0, 100)


def data(n: int = 23) -> Dataset[Any]:
    return Dataset(np.arange(2.0 * n).reshape(n, 2), np.arange(n))


def by_sample(batches: Any) -> dict[int, bytes]:
    """The bits of each sample by its number, which stands behind the comma of the random label."""
    return {int(x): noise.tobytes() for noise, x in zip(*map(np.concatenate, zip(*batches, strict=True)), strict=True)}


def test_a_map_is_called_when_a_sample_is_read() -> None:
    calls = list[int]()

    def noted(x: Any, y: Any) -> Any:
        calls.append(int(y))
        return x, -y

    mapped = data(6).map(noted).take(slice(None, None, -1))
    assert calls == []
    assert mapped[0][1] == -5
    assert [part.tolist() for part in mapped[1:3]] == [[[8.0, 9.0], [6.0, 7.0]], [-4, -3]]
    assert calls == [5, 4, 3]
    next(iter(mapped.batches(2)))
    assert calls == [5, 4, 3, 5, 4]
    assert len(mapped.arrays[1]) == 6


def keyed(x: Any, y: Any, random: SampleRandom) -> Any:
    return x + random.uniform((2,), np.float64), y


def test_bits_depend_on_seed_epoch_and_sample_alone() -> None:
    mapped = data().map(keyed, seed=7)
    for k in range(3):
        expected = {i: (data()[i][0] + SampleRandom(7, k, i).uniform((2,), np.float64)).tobytes() for i in range(23)}
        assert by_sample(mapped.batches(5, seed=3).epoch(k)) == expected
        assert by_sample(mapped.batches(23).epoch(k)) == expected
        assert by_sample(mapped.shuffle(1).batches(4, seed=0).prefetch(3).epoch(k)) == expected
        assert by_sample(data().shuffle(1).map(keyed, seed=7).batches(4).epoch(k)) == expected
        parts = [by_sample(part.batches(2).epoch(k)) for part in mapped.split(0.5, seed=9)]
        assert parts[0] | parts[1] == expected
        assert {i: mapped.at_epoch(k)[i][0].tobytes() for i in range(23)} == expected
    assert by_sample(mapped.batches(23).epoch(0)) != by_sample(mapped.batches(23).epoch(1))
    assert by_sample(data().map(keyed, seed=8).batches(23)) != by_sample(mapped.batches(23))


def ragged(x: Any, y: Any, random: SampleRandom) -> Any:
    return random.uniform((int(y) % 5 * 40,), np.float64).sum() + x, y


def test_how_much_other_samples_draw_changes_nothing() -> None:
    whole = data().map(ragged, seed=7)
    expected = {
        i: (data()[i][0] + SampleRandom(7, 0, i).uniform((i % 5 * 40,), np.float64).sum()).tobytes() for i in range(23)
    }
    for order in (0, 1, 2):
        assert by_sample(whole.shuffle(order).batches(23)) == expected


def test_global_random_numbers_are_not_touched() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    list(data().map(jittered, seed=0).shuffle(0).batches(4, seed=0))
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]


def test_maps_one_on_another_draw_different_numbers() -> None:
    twice = data().map(keyed, seed=0).map(keyed, seed=0)
    first, second = (SampleRandom(0, 0, 4, use).uniform((2,), np.float64) for use in (0, 1))
    assert twice[4][0].tolist() == (data()[4][0] + first + second).tolist()
    assert first.tolist() != second.tolist()


def test_the_order_of_an_epoch_is_that_of_the_batches() -> None:
    labels = [y for _, ys in data().map(jittered, seed=1).batches(5, seed=3).epoch(2) for y in ys.tolist()]
    order = permutation(23, seed=3, step=2).tolist()
    draws = [SampleRandom(1, 2, i) for i in order]
    assert labels == [i + [r.normal((2,)), r.integers(0, 100)][1] for i, r in zip(order, draws, strict=True)]


def test_an_epoch_of_plain_data_is_the_data() -> None:
    plain = data().map(lambda x, y: (x, y))
    assert plain.at_epoch(3) is plain
    with pytest.raises(DomainError, match="batches: epoch: expected at least 0, got -1"):
        plain.at_epoch(-1)


def test_forms_of_samples() -> None:
    one = Dataset([1, 2, 3]).map(lambda x: x * 2)
    assert [array.tolist() for array in one[:]] == [[2, 4, 6]]
    named = data(3).map(lambda x, y: {"a": x, "b": y})
    assert {k: v.tolist() for k, v in named[1:].items()} == {"a": [[2.0, 3.0], [4.0, 5.0]], "b": [1, 2]}
    assert named.map(lambda s: s["b"] + 1)[:][0].tolist() == [1, 2, 3]
    by_name = Dataset(x=[1, 2], y=[3, 4]).map(lambda s, random: (s["x"], random.integers(5, 6)), seed=0)
    assert [array.tolist() for array in by_name[:]] == [[1, 2], [5, 5]]


def test_a_map_cannot_write_into_the_data() -> None:
    def spoil(x: Any, y: Any) -> Any:
        x += 1
        return x, y

    with pytest.raises(ValueError, match="read-only"):
        data().map(spoil).shuffle(0)[:3]


def test_an_error_says_of_which_sample_it_was() -> None:
    def fails(x: Any, y: Any, random: SampleRandom) -> Any:
        return 1 // (int(y) - 4), y

    with pytest.raises(ZeroDivisionError) as caught:
        list(data().map(fails, seed=0).batches(2).epoch(1))
    name = "test_an_error_says_of_which_sample_it_was.<locals>.fails"
    assert caught.value.__notes__ == [f"in map({name}, seed=0) of sample 4 in epoch 1"]


ALIKE = "as in the first sample of the batch"


@pytest.mark.parametrize(
    ("fn", "kind", "text"),
    [
        (
            lambda x, y: x[: 1 + int(y) % 2],
            ShapeError,
            f"map: sample 1: array 0: expected shape (1,) {ALIKE}, got (2,); pad or cut it",
        ),
        (
            lambda x, y: (x, y.astype(np.int32) if y == 2 else y),
            DTypeError,
            f"map: sample 2: array 1: expected int64 {ALIKE}, got int32; convert it",
        ),
        (
            lambda x, y: {"x": x} if y < 2 else {"x": x, "y": y},
            DomainError,
            f"map: sample 2: expected arrays ['x'] {ALIKE}, got ['x', 'y']",
        ),
        (
            lambda x, y: None,
            DTypeError,
            "map: sample 0: array 0: expected numbers, got Python objects (NoneType); "
            "convert them with astype, columns of several types one by one",
        ),
    ],
)
def test_samples_that_are_not_alike(fn: Any, kind: type[DgrrError], text: str) -> None:
    with pytest.raises(kind) as caught:
        next(iter(data().map(fn).batches(4)))
    assert str(caught.value) == text


def test_maps_refused() -> None:
    with pytest.raises(DomainError) as caught:
        data().map(3)  # type: ignore[arg-type]
    assert str(caught.value) == "map: argument 'fn': expected a function of a sample's arrays, got 3"
    with pytest.raises(DomainError) as caught:
        data(0).map(lambda x, y: x)[:]
    assert str(caught.value).endswith(": expected at least one sample, along one axis, got shape (0,)")
    many: Any = Stream([1])
    for _ in range(255):
        many = many.map(abs)
    with pytest.raises(DomainError) as caught:
        many.map(abs)
    assert str(caught.value) == "map: expected at most 255 maps one on another, got more"
