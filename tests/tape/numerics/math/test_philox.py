"""Philox against the known answers of its authors, and the numbers made of its words."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from dgrr.tape.errors import DomainError, DTypeError
from dgrr.tape.numerics.math.philox import CHUNK, philox, words
from dgrr.tape.numerics.math.random import permutation, uniform

# kat_vectors of Random123 (D. E. Shaw Research), "philox4x32 10": counter, key, result.
KNOWN_ANSWERS = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""
VECTORS = [[int(word, 16) for word in line.split()] for line in KNOWN_ANSWERS.split("\n") if line]
TOP = 2**32 - 1


def slow_philox(counter: tuple[int, ...], key: tuple[int, int]) -> list[int]:
    """One block in Python integers, from the paper."""
    (x0, x1, x2, x3), (k0, k1) = counter, key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * x0, 0xCD9E8D57 * x2
        x0, x1, x2, x3 = p1 >> 32 ^ x1 ^ k0, p1 & TOP, p0 >> 32 ^ x3 ^ k1, p0 & TOP
        k0, k1 = (k0 + 0x9E3779B9) & TOP, (k1 + 0xBB67AE85) & TOP
    return [x0, x1, x2, x3]


def slow_words(key: tuple[int, int], stream: tuple[int, int, int], n: int) -> list[int]:
    blocks = [slow_philox((block, *stream), key) for block in range(-(-n // 4))]
    return [word for block in blocks for word in block][:n]


@pytest.mark.parametrize("vector", VECTORS)
def test_known_answers(vector):
    counter = tuple(np.array([word], np.uint64) for word in vector[:4])
    assert [int(lane[0]) for lane in philox(counter, (vector[4], vector[5]))] == vector[6:]
    assert slow_philox(tuple(vector[:4]), (vector[4], vector[5])) == vector[6:]


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 101])
def test_word_i_is_word_i_mod_4_of_block_i_div_4(n):
    key, stream = (0xA4093822, TOP), (5, TOP, 0x12345678)
    drawn = words(key, stream, n)
    assert drawn.dtype == np.uint32
    assert drawn.tolist() == slow_words(key, stream, n)


def test_chunks_join_without_a_seam():
    seam = 4 * CHUNK
    drawn = words((1, 2), (3, 4, 5), 2 * seam + 7)
    blocks = range(CHUNK - 1, CHUNK + 2)
    assert drawn[seam - 4 : seam + 8].tolist() == [w for b in blocks for w in slow_philox((b, 3, 4, 5), (1, 2))]
    assert drawn[-3:].tolist() == slow_philox((2 * CHUNK + 1, 3, 4, 5), (1, 2))[:3]


SEED = 0x299F31D0_A4093822
COORDINATES = {"seed": SEED, "step": 9, "micro_batch": 2, "ordinal": 7}


def test_uniform_float32_is_the_top_24_bits_of_each_word():
    drawn = uniform((3, 7), np.float32, **COORDINATES)
    assert drawn.dtype == np.float32
    expected = [(word >> 8) * 2.0**-24 for word in slow_words((0xA4093822, 0x299F31D0), (7, 2, 9), 21)]
    assert drawn.tolist() == np.reshape(expected, (3, 7)).tolist()
    assert uniform((3, 7), np.dtype(np.float32), **COORDINATES).tolist() == drawn.tolist()


def test_uniform_float64_is_the_top_53_bits_of_two_words():
    drawn = uniform((5,), np.float64, **COORDINATES)
    assert drawn.dtype == np.float64
    pairs = np.reshape(slow_words((0xA4093822, 0x299F31D0), (7, 2, 9), 10), (5, 2)).tolist()
    assert drawn.tolist() == [((low + (high << 32)) >> 11) * 2.0**-53 for low, high in pairs]


def test_uniform_fills_the_interval():
    for dtype in (np.float32, np.float64):
        drawn = uniform((100_000,), dtype, seed=1)
        assert 0 <= drawn.min() < 1e-4
        assert 1 - 1e-4 < drawn.max() < 1
        counts, _ = np.histogram(drawn, 16, (0, 1))
        assert ((counts - 6250) ** 2 / 6250).sum() < 45  # chi-square, 15 degrees: p = 1e-4


def test_permutation_sorts_64_bit_keys():
    pairs = np.reshape(slow_words((0xA4093822, 0x299F31D0), (7, TOP, 9), 100), (50, 2)).tolist()
    keys = [low + (high << 32) for low, high in pairs]
    drawn = permutation(50, seed=SEED, step=9, ordinal=7)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == sorted(range(50), key=keys.__getitem__)
    assert permutation(0, seed=1).tolist() == []


def test_every_coordinate_gives_other_numbers():
    base = uniform((8,), np.float32, **COORDINATES).tolist()
    other = [uniform((8,), np.float32, **{**COORDINATES, name: 3}).tolist() for name in COORDINATES]
    high_seed = uniform((8,), np.float32, **{**COORDINATES, "seed": SEED + (1 << 32)}).tolist()
    draws = [base, high_seed, *other]
    assert len({tuple(draw) for draw in draws}) == len(draws)


def test_a_longer_draw_continues_a_shorter_one():
    long = uniform((40,), np.float32, seed=3)
    assert uniform((13,), np.float32, seed=3).tolist() == long[:13].tolist()


@pytest.mark.parametrize(
    ("draw", "error", "text"),
    [
        (
            lambda: uniform((2,), np.float32, seed=-1),
            DomainError,
            "uniform: argument 'seed': expected an integer from 0 to 18446744073709551615, got -1",
        ),
        (
            lambda: uniform((2,), np.float32, seed=0, step=2**32),
            DomainError,
            "uniform: argument 'step': expected an integer from 0 to 4294967295, got 4294967296",
        ),
        (
            lambda: uniform((2,), np.float32, seed=0, micro_batch=2**32 - 2),
            DomainError,
            "uniform: argument 'micro_batch': expected an integer from 0 to 4294967293, got 4294967294",
        ),
        (
            lambda: uniform((2,), np.float32, seed=0, ordinal=1.0),  # type: ignore[arg-type]
            DomainError,
            "uniform: argument 'ordinal': expected an integer from 0 to 4294967295, got 1.0",
        ),
        (
            lambda: uniform((-2, -2), np.float32, seed=0),
            DomainError,
            "uniform: argument 'shape': expected an integer from 0 to 8589934591, got -2",
        ),
        (
            lambda: uniform((2**20, 2**20), np.float32, seed=0),
            DomainError,
            "uniform: argument 'shape': expected an integer from 0 to 8589934591, got 1099511627776",
        ),
        (
            lambda: uniform((2,), np.float16, seed=0),  # type: ignore[type-var]
            DTypeError,
            "uniform: argument 'dtype': expected float32 or float64, got float16",
        ),
        (
            lambda: permutation(-1, seed=0),
            DomainError,
            "permutation: argument 'n': expected an integer from 0 to 8589934591, got -1",
        ),
        (
            lambda: permutation(4, seed=2**64),
            DomainError,
            "permutation: argument 'seed': "
            "expected an integer from 0 to 18446744073709551615, got 18446744073709551616",
        ),
    ],
)
def test_errors(draw: Callable[[], object], error: type[Exception], text: str):
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        draw()
