"""The copy kernel against numpy's own copy, which moves bits and computes none."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.tape.numerics.basic.copy import copy, copy_words
from dgrr.tape.numerics.engine.kernel import call
from dgrr.tape.numerics.engine.launch import Words

pytestmark = pytest.mark.quick

Array = npt.NDArray[Any]
PARTS = (1, 2, 7)
DTYPES = (np.float32, np.float64, np.int64, np.bool_)
JUNK = 0xA5


def bits(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array of random bits: any NaN, any int64; for bools of zeros and ones."""
    rng = np.random.default_rng(0)
    if dtype == np.bool_:
        return np.asarray(rng.integers(0, 2, shape).astype(np.bool_))
    size = np.dtype(dtype).itemsize
    patterns: Array = np.asarray(rng.integers(0, 256, (*shape, size), np.uint8)).view(dtype)
    return patterns[..., 0]


def copied(x: Array, parts: int = 1) -> Array:
    """``x`` copied by the kernel into junk, between two borders that must not be touched."""
    area = np.full(x.nbytes + 128, JUNK, np.uint8)
    out = area[64 : 64 + x.nbytes].view(x.dtype)
    words = copy_words(x.shape, x.strides, x.itemsize)
    for part in reversed(range(parts)):
        assert call(copy.address(x.dtype), words.address, part, parts, (id(out), id(x))) == 0
    assert (area[:64] == JUNK).all() and (area[64 + x.nbytes :] == JUNK).all()
    return out.reshape(x.shape)


def check(x: Array, parts: int = 1) -> None:
    assert copied(x, parts).tobytes() == x.tobytes(), (x.shape, x.strides, x.dtype, parts)


@st.composite
def views(draw: st.DrawFn) -> Array:
    """Arrays cut, reversed, permuted and repeated."""
    sizes = draw(st.lists(st.integers(1, 5) | st.sampled_from([0, 17, 40]), max_size=5))
    while np.prod(sizes) > 30_000:
        sizes.pop()
    x = bits(tuple(sizes), draw(st.sampled_from(DTYPES)))
    steps = draw(st.lists(st.sampled_from([1, 2, -1, -3]), min_size=x.ndim, max_size=x.ndim))
    cuts: Any = (..., *(slice(None, None, step) for step in steps))
    x = x[cuts]
    x = x.transpose(draw(st.permutations(range(x.ndim))))
    for axis in draw(st.lists(st.integers(0, x.ndim), max_size=2)):
        x = np.expand_dims(x, axis)
        x = np.broadcast_to(x, (*x.shape[:axis], draw(st.integers(1, 4)), *x.shape[axis + 1 :]))
    return x


@given(views(), st.sampled_from(PARTS))
@settings(max_examples=400)
def test_any_view_becomes_contiguous(x: Array, parts: int) -> None:
    check(x, parts)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("parts", PARTS)
def test_every_inner_loop_and_its_edges(dtype: Any, parts: int) -> None:
    for m in (1, 2, 15, 16, 17, 33, 64, 65, 130):
        for n in (1, 3, 8, 15, 16, 17, 31, 64, 65, 100):
            x = bits((m, n), dtype)
            check(x.T, parts)
            check(x[::-1].T, parts)
            check(x[:, ::2].T, parts)
            check(x[:, : n - 1], parts)
            check(np.broadcast_to(x[:, :1], (m, n)), parts)
            check(np.broadcast_to(x[0], (m, n)), parts)


def test_a_transpose_inside_other_axes() -> None:
    x = bits((5, 20, 3, 18), np.float32)
    check(x.transpose(0, 3, 1, 2), 2)
    check(x.transpose(2, 3, 0, 1), 2)
    check(x.transpose(3, 2, 1, 0), 3)


def test_more_axes_than_can_be_joined() -> None:
    x = bits((3,) * 9, np.float64)[(slice(None, None, 2),) * 9]
    check(x, 2)
    check(x.transpose(8, 0, 7, 1, 6, 2, 5, 3, 4), 2)


def test_elements_that_are_not_aligned() -> None:
    packed = np.zeros((40, 33), [("flag", np.int8), ("value", np.float64)])
    packed["value"] = bits((40, 33), np.float64)
    check(packed["value"])
    check(packed["value"].T)


def test_scalars_and_empty_arrays() -> None:
    check(bits((), np.float32), 2)
    check(bits((0,), np.float32))
    check(bits((4, 0, 3), np.float32).T, 2)
    check(bits((0, 4), np.float32).T, 2)


WORDS: list[tuple[tuple[int, ...], tuple[int, ...], list[int]]] = [
    ((2, 3, 4), (48, 16, 4), [1, 2, 1, 0, 0, 24, 4, 1]),
    ((), (), [0, 2, 1, 0, 0, 1, 0, 0]),
    ((3, 4), (4, 12), [1, 2, 3, 4, 4, 4, 12, 1]),
    ((2, 3, 4), (12, 4, 24), [0, 2, 6, 4, 4, 4, 24, 1]),
    ((5, 2, 3), (4, 60, 20), [1, 2, 5, 4, 6, 6, 20, 1]),
]


@pytest.mark.parametrize(("shape", "strides", "expected"), WORDS)
def test_words_hold_as_few_axes_as_the_strides_allow(
    shape: tuple[int, ...], strides: tuple[int, ...], expected: list[int]
) -> None:
    words = copy_words(shape, strides, 4)
    assert isinstance(words, Words)
    assert words.values.tolist() == expected
