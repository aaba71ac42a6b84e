"""Copies of strided arrays in CUDA C++ against the CPU's, bit for bit, on the host."""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.arrays import Array
from dgrr.tape.numerics.basic.copy import copy_words
from dgrr.tape.ops import cuda_forms
from dgrr.tape.ops.shape import cuda as cuda_copies

from .host import NO_FAULT, Host, needs_cuda, output
from .mutation import is_found, mutated

pytestmark = needs_cuda
TYPES = tuple(map(np.dtype, (np.uint8, np.float32, np.float64)))
SIZES = (3, 2, 5, 4)
MANY = np.arange(35 * 41, dtype=np.float32).reshape(35, 41).T
"""More elements than a block has threads."""


def words_of(view: Array) -> tuple[int, ...]:
    return tuple(copy_words(view.shape, view.strides, view.dtype.itemsize).values.tolist())


def views(dtype: Any) -> list[Array]:
    """Axes in every order, backwards, apart, repeated, of one element and of none; more than a launch has words for."""
    whole = np.random.default_rng(0).integers(0, 256, SIZES).astype(dtype)
    found = [whole.transpose(order) for order in permutations(range(4))]
    found += [whole[::-1, :, ::2, 1:], np.broadcast_to(whole[:, :1], SIZES), np.broadcast_to(whole[0, 0, 0, 0], (7, 1))]
    found += [whole[:0], whole[:1, 0, 0, 0], whole.reshape(3, 2, 5, 2, 2, 1).transpose(4, 1, 0, 3, 5, 2)[..., ::2]]
    return [*found, whole.reshape(-1)[:64].reshape((2,) * 6).transpose(5, 3, 1, 0, 2, 4)]


def wrong(host: Host, seen: Sequence[Array]) -> int:
    """How many elements are not those of the source."""
    count = 0
    for view in seen:
        got, untouched = output(view.shape, view.dtype)
        assert host.run("copy", [got, view], words_of(view), view.dtype) == NO_FAULT
        assert untouched(), "a kernel writes outside of its output"
        count += int((got != view).sum())
    return count


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_element_comes_from_its_place(host: Host, dtype: Any) -> None:
    assert wrong(host, views(dtype)) == 0


@pytest.mark.parametrize("limits", [("MOST_AXES", 0), ("LARGEST", 1)], ids=["axes", "elements"])
def test_of_any_number_it_does_too(host: Host, limits: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_copies, *limits)
    assert wrong(host, views(TYPES[1])) == 0


def test_of_many_elements_a_thread_has_some(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_copies, "PROCESSORS", 1)
    (launch,) = cuda_forms.FORMS["copy"].launches(TYPES[1], words_of(MANY))
    assert ("PER", 4) in launch.defines
    assert wrong(host, [MANY]) == 0


MUTANTS = {
    "without the last axis": ("axis < AXES; axis++", "axis < AXES - 1; axis++"),
    "the place of a thread's first element": ("place(call, first + k * 256)", "place(call, first)"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_place_is_found(mutant: str, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_copies, "PROCESSORS", 1)
    assert is_found(wrong, mutated(tmp_path, programs, "copies.cu", *MUTANTS[mutant]), [MANY])
