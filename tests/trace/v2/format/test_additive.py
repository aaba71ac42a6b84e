"""The additive digest: its definition in Python's integers, parts that add up, and changes that are seen."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dgrr.base.arrays import Array
from dgrr.trace.v2.format.additive import added, additive_digest

MASK = (1 << 64) - 1
DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "uint16", "int32", "int64", "bool"]


def word(n: int) -> int:
    z = (n + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def mix(i: int) -> int:
    return (word(2 * i) | 1) + (word(2 * i + 1) << 64)


def by_the_page(numbered: list[tuple[int, bytes]]) -> bytes:
    """The sum of docs/trace_format.md, of elements by their numbers."""
    total = sum((int.from_bytes(element, "little") + 1) * mix(i) for i, element in numbered)
    return (total % 2**128).to_bytes(16, "little")


def bits(array: Array) -> list[bytes]:
    size, data = array.itemsize, array.tobytes()
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def drawn(dtype: str, shape: tuple[int, ...]) -> Array:
    numbers = np.random.default_rng(3).integers(-100, 100, shape)
    kind: Any = dtype if dtype in np.sctypeDict else getattr(pytest.importorskip("ml_dtypes"), dtype)
    return np.asarray(numbers % 2 if dtype == "bool" else numbers).astype(kind)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (5, 7), (2, 3, 4)])
def test_it_is_what_the_page_says(dtype: str, shape: tuple[int, ...]) -> None:
    array = drawn(dtype, shape)
    assert additive_digest(array) == by_the_page(list(enumerate(bits(array))))


def test_the_largest_words_do_not_overflow() -> None:
    array = np.full(70_000, MASK, np.uint64)  # longer than a block
    assert additive_digest(array) == by_the_page(list(enumerate(bits(array))))


@pytest.mark.parametrize(("dtype", "part"), [("complex64", "float32"), ("complex128", "float64")])
def test_complex_numbers_are_pairs(dtype: str, part: str) -> None:
    array = (drawn("float64", (3, 4)) + 1j * drawn("float64", (3, 4))[::-1]).astype(dtype)
    pairs = array.view(part).reshape(3, 4, 2)
    assert additive_digest(array) == by_the_page(list(enumerate(bits(pairs))))
    cut = additive_digest(array[:, :1], (3, 4), (0, 0)), additive_digest(array[:, 1:], (3, 4), (0, 1))
    assert added(cut) == additive_digest(array)


def test_order_in_memory_and_of_bytes_and_the_form_of_nan_do_not_count() -> None:
    array = drawn("float32", (6, 5))
    array[0, 0] = np.nan
    odd = array.copy()
    odd.view(np.uint32)[0, 0] = 0xFFC12345
    for same in (np.asfortranarray(array), array.astype(">f4"), odd, np.repeat(array, 2, 0)[::2]):
        assert additive_digest(same) == additive_digest(array)


@given(st.data())
def test_parts_add_up_wherever_they_are_cut(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 6), max_size=4)))
    array = drawn("int16", shape)
    cuts = [sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=3))}) for n in shape]
    parts = list[bytes]()
    for corner in product(*(pairwise(cut) for cut in cuts)):
        box = array[tuple(slice(*edge) for edge in corner)]
        numbers = np.arange(array.size).reshape(shape)[tuple(slice(*edge) for edge in corner)].ravel().tolist()
        parts.append(additive_digest(box, shape, [begin for begin, _ in corner]))
        assert parts[-1] == by_the_page(list(zip(numbers, bits(box), strict=True)))
    assert added(data.draw(st.permutations(parts))) == additive_digest(array)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 8))
def test_a_change_of_one_element_is_always_seen(one: int, other: int, at: int) -> None:
    a, b = np.zeros(9, np.uint64), np.zeros(9, np.uint64)
    a[at], b[at] = one, other
    assert (additive_digest(a) == additive_digest(b)) is (one == other)


def test_zeros_and_their_number_count() -> None:
    assert len({additive_digest(np.zeros(n)) for n in range(9)}) == 9
