"""Layouts through views: where numpy says the elements are, or that they must be copied."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

from dgrr.runtime.lower.array_layout import ArrayLayout

pytestmark = pytest.mark.quick

Array = npt.NDArray[Any]
FLOAT32 = np.dtype(np.float32)


def memory_of(layout: ArrayLayout) -> tuple[Array, Array]:
    """Bytes with a storage for a dense layout, and the array of the layout in them."""
    memory = np.random.default_rng(0).integers(0, 256, layout.nbytes + 64).astype(np.uint8)
    return memory, layout.array(memory)


VIEWS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda a: a.T,
    "permuted": lambda a: a.transpose(2, 0, 1),
    "reversed": lambda a: a[::-1, :, ::-1],
    "every second from behind": lambda a: a[:, ::-2],
    "inner block": lambda a: a[1:, 1:3, 2:],
    "one row": lambda a: a[1, 2],
    "one element": lambda a: a[1, 2, 3, ...],
    "new axis": lambda a: a[:, None],
    "reshaped": lambda a: a.reshape(6, 20),
    "flattened": lambda a: a.reshape(-1),
    "broadcast": lambda a: np.broadcast_to(a, (7, *a.shape)),
    "an axis repeated": lambda a: np.broadcast_to(a[:, :1], a.shape),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.int64])
def test_a_view_is_where_numpy_has_it(name: str, dtype: Any) -> None:
    layout = ArrayLayout.dense((2, 3, 20), np.dtype(dtype))
    memory, before = memory_of(layout)
    through = layout.through(VIEWS[name])
    assert through is not None
    expected = VIEWS[name](before)
    assert (through.shape, through.strides) == (expected.shape, expected.strides)
    assert through.array(memory).tobytes() == expected.tobytes()


@given(first=st.sampled_from(list(VIEWS)), second=st.sampled_from(["transposed", "reversed rows", "tail", "first"]))
def test_views_of_views(first: str, second: str) -> None:
    again: dict[str, Callable[[Array], Array]] = {
        "transposed": lambda a: a.T,
        "reversed rows": lambda a: a[::-1] if a.ndim else a,
        "tail": lambda a: a[len(a) // 2 :] if a.ndim else a,
        "first": lambda a: a[:1] if a.ndim else a,
    }
    layout = ArrayLayout.dense((2, 3, 20), FLOAT32)
    memory, before = memory_of(layout)
    once = layout.through(VIEWS[first])
    assert once is not None
    twice = once.through(again[second])
    assert twice is not None
    assert twice.array(memory).tobytes() == again[second](VIEWS[first](before)).tobytes()


def test_the_offset_of_the_storage_is_kept() -> None:
    layout = ArrayLayout((2, 3), (12, 4), 40, FLOAT32)
    through = layout.through(lambda a: a[::-1, 1:])
    assert through == ArrayLayout((2, 2), (-12, 4), 40 + 12 + 4, FLOAT32)


@pytest.mark.parametrize("view", [VIEWS["transposed"], VIEWS["reversed"], VIEWS["an axis repeated"]])
def test_a_reshape_that_has_to_copy_has_no_layout(view: Callable[[Array], Array]) -> None:
    layout = ArrayLayout.dense((2, 3, 20), FLOAT32).through(view)
    assert layout is not None
    assert not layout.is_dense
    assert layout.through(lambda a: a.reshape(-1)) is None


@pytest.mark.parametrize(
    ("shape", "view"), [((4, 3), lambda a: a[3:1]), ((1,), lambda a: np.broadcast_to(a, (0,))), ((0, 3), lambda a: a.T)]
)
def test_no_elements_lie_nowhere(shape: tuple[int, ...], view: Callable[[Array], Array]) -> None:
    through = ArrayLayout.dense(shape, FLOAT32).through(view)
    assert through is not None
    assert through.is_dense
    assert through.nbytes == 0
    assert through.shape == view(np.zeros(shape)).shape


@pytest.mark.parametrize(
    ("shape", "strides", "dense"),
    [
        ((), (), True),
        ((3, 4), (16, 4), True),
        ((3, 4), (4, 12), False),
        ((3, 4), (32, 4), False),
        ((3, 4), (0, 4), False),
        ((3, 4), (-16, 4), False),
        ((1, 4), (999, 4), True),
        ((3, 1), (4, -7), True),
        ((0, 4), (1, 1), True),
    ],
)
def test_dense_means_row_major_without_gaps(shape: tuple[int, ...], strides: tuple[int, ...], dense: bool) -> None:
    assert ArrayLayout(shape, strides, 8, FLOAT32).is_dense is dense


def test_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout of a large value costs address space, not memory: its array is never written."""
    made: list[Array] = []
    right = np.empty

    def empty(*arguments: Any) -> Array:
        made.append(right(*arguments))
        return made[-1]

    monkeypatch.setattr(np, "empty", empty)
    through = ArrayLayout.dense((1 << 14, 1 << 14), FLOAT32).through(lambda a: a.T[::-1])
    assert through is not None
    assert through.offset == ((1 << 14) - 1) * 4
    assert [a.nbytes for a in made] == [1 << 30]
