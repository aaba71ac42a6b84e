"""Sums of additive digests on a GPU: as the page of the format defines them."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime.cuda.additive import MOST_BLOCKS, NO_NAN, THREADS, NanForm, blocks_of, start_sums

from ...trace.v2.format.test_additive import MASK, bits, by_the_page

pytestmark = [pytest.mark.xdist_group("cuda")]


def found(gpu: Any, elements: np.ndarray[Any, Any], nan: NanForm = NO_NAN) -> bytes:
    gpu.use()
    sums = np.full((blocks_of(elements.size) + 1, 2), 7, np.uint64)
    start_sums(gpu, 0, sums.ctypes.data, elements.ctypes.data, elements.size, elements.itemsize, nan)
    assert sums[-1].tolist() == [7, 7]
    total = sum(int(low) + (int(high) << 64) for low, high in sums[:-1])
    return (total % 2**128).to_bytes(16, "little")


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("count", [1, 255, 256, 257, MOST_BLOCKS * THREADS + 3])
def test_they_are_those_of_the_page(kind: Any, count: int, host_gpu: Any) -> None:
    elements = np.random.default_rng(count).integers(0, np.iinfo(kind).max, count, kind, endpoint=True)
    assert found(host_gpu, elements) == by_the_page(list(enumerate(bits(elements))))


def test_the_largest_words_do_not_overflow(host_gpu: Any) -> None:
    elements = np.full(3, MASK, np.uint64)
    assert found(host_gpu, elements) == by_the_page(list(enumerate(bits(elements))))


def test_every_nan_counts_as_one(host_gpu: Any) -> None:
    elements = np.array([1.5, np.inf, -np.inf, np.nan, 0], np.float32)
    odd = elements.copy()
    odd.view(np.uint32)[3] = 0xFFC12345
    form = NanForm(0x7FFFFFFF, 0x7F800000, 0x7FC00000)
    assert found(host_gpu, odd, form) == by_the_page(list(enumerate(bits(elements)))) != found(host_gpu, odd)
