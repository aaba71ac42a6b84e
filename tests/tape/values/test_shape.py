"""Shapes and named dimensions: sizes, broadcasting, unification, and how patterns are written in errors."""

from typing import Any, TypeVar, TypeVarTuple, Unpack

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given

from dgrr.tape import Dim, Shape, ShapeError
from dgrr.tape.values.shape import Pattern, normal_axes, normal_axis

pytestmark = pytest.mark.quick

M = TypeVar("M")
N = TypeVar("N")
Bs = TypeVarTuple("Bs")


class Batch(Dim):
    pass


class Pixels(Dim, size=784):
    pass


def test_shape_is_a_tuple_of_sizes() -> None:
    shape: Any = Shape((2, 3))
    assert shape == (2, 3)
    assert (shape.size, shape.rank) == (6, 2)
    assert (Shape(()).size, Shape(()).rank) == (1, 0)
    assert Shape((0, 3)).size == 0
    assert hash(shape) == hash((2, 3))


def test_negative_sizes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"^Shape: expected sizes of at least 0, got \(2, -1\)$"):
        Shape((2, -1))


@given(
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
def test_can_broadcast_to_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        np.broadcast_to(np.empty(a), b)
    except ValueError:
        assert not Shape(a).can_broadcast_to(b)
    else:
        assert Shape(a).can_broadcast_to(b)


def test_unify_binds_each_name_once() -> None:
    assert Pattern.of(M, N).unify((2, 3), {}) == {M: 2, N: 3}
    assert Pattern.of(M, M).unify((2, 2), {}) == {M: 2}
    assert Pattern.of(M, M).unify((2, 3), {}) is None
    assert Pattern.of(M, N).unify((2, 3), {N: 4}) is None
    assert Pattern.of(M).unify((2, 3), {}) is None
    assert Pattern.of(M, N).unify((2,), {}) is None


def test_a_pack_takes_the_axes_between() -> None:
    pattern = Pattern.of(Unpack[Bs], M, N)
    assert pattern.unify((2, 3), {}) == {Bs: (), M: 2, N: 3}
    assert pattern.unify((7, 8, 2, 3), {}) == {Bs: (7, 8), M: 2, N: 3}
    assert pattern.unify((3,), {}) is None
    assert pattern.unify((7, 2, 3), {Bs: (8,)}) is None
    assert pattern.sizes({Bs: (7, 8), M: 2, N: 3}) == (7, 8, 2, 3)


def test_sizes_that_are_fixed() -> None:
    assert Pattern.of(Pixels, 3).unify((784, 3), {}) == {Pixels: 784, 3: 3}
    assert Pattern.of(Pixels).unify((783,), {}) is None
    assert Pattern.of(3).unify((4,), {}) is None


def test_any_fits_every_size() -> None:
    assert Pattern.of(Any, M).unify((5, 2), {}) == {M: 2}
    assert Pattern.of(Unpack[tuple[Any, ...]]).unify((5, 2, 1), {}) == {}
    assert not Pattern.of(Any, M).exact
    assert not Pattern.of(Unpack[tuple[Any, ...]]).exact
    assert Pattern.of(Unpack[Bs], M).exact


def test_unify_changes_no_bindings() -> None:
    known: dict[object, Any] = {M: 2}
    Pattern.of(M, N).unify((2, 3), known)
    assert known == {M: 2}


@pytest.mark.parametrize(
    ("pattern", "known", "text"),
    [
        (Pattern.of(M, N), {}, "(M, N)"),
        (Pattern.of(M, N), {M: 3}, "(3, N)"),
        (Pattern.of(M), {}, "(M,)"),
        (Pattern.of(), {}, "()"),
        (Pattern.of(Batch, Pixels), {}, "(Batch, Pixels=784)"),
        (Pattern.of(Batch), {Batch: 5}, "(Batch=5,)"),
        (Pattern.of(2, Any), {}, "(2, _)"),
        (Pattern.of(Unpack[Bs], M), {Bs: (4, 5)}, "(4, 5, M)"),
        (Pattern.of(Unpack[Bs]), {Bs: (4,)}, "(4,)"),
        (Pattern.of(Unpack[Bs]), {Bs: ()}, "()"),
        (Pattern.of(Unpack[Bs], M), {}, "(*Bs, M)"),
        (Pattern.of(Unpack[Bs]), {}, "(*Bs)"),
        (Pattern.of(Unpack[tuple[Any, ...]], M), {}, "(..., M)"),
    ],
)
def test_patterns_are_written_as_shapes(pattern: Pattern, known: dict[object, Any], text: str) -> None:
    assert pattern.render(known) == text


def test_normal_axis() -> None:
    assert [normal_axis("op", a, 3) for a in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    with pytest.raises(ShapeError, match=r"^op: argument 'axis': expected an axis from -3 to 2, got 3$"):
        normal_axis("op", 3, 3)
    with pytest.raises(ShapeError, match=r"^op: argument 'axis': expected no axis of a scalar, got 0$"):
        normal_axis("op", 0, 0)


def test_normal_axes() -> None:
    assert normal_axes("op", None, 3) == (0, 1, 2)
    assert normal_axes("op", -1, 3) == (2,)
    assert normal_axes("op", (2, 0), 3) == (0, 2)
    assert normal_axes("op", (), 3) == ()
    with pytest.raises(ShapeError, match=r"^op: argument 'axis': expected different axes, got \(1, -2\)$"):
        normal_axes("op", (1, -2), 3)
