"""Slices, reshapes and broadcasts of random shapes are numpy's, and so are the gradients that come back."""

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from dgrr.tape import ShapeError, Tape, Var

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def counted(shape: tuple[int, ...]) -> np.ndarray:
    """An array whose elements are all different."""
    return np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)


@given(st.data())
def test_slices_are_numpys(data: st.DataObject) -> None:
    array = counted(data.draw(SHAPES))
    index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True))
    tape: Tape[Any] = Tape()
    x = tape.leaf(array)
    part = x[index]
    expected = array[index]
    assert part.numpy().shape == np.shape(expected)
    assert part.numpy().tolist() == np.asarray(expected).tolist()
    seed = counted(np.shape(expected)) + 1
    placed = np.zeros_like(array)
    placed[index] = seed
    assert tape.backward(part, seed)[0].numpy().tolist() == placed.tolist()


@given(st.data())
def test_reshapes_are_numpys(data: st.DataObject) -> None:
    array = counted(data.draw(SHAPES))
    target: tuple[int, ...] = data.draw(SHAPES)
    free = data.draw(st.integers(-1, len(target) - 1))  # the size to leave open, or -1 for none
    asked = tuple(-1 if i == free else s for i, s in enumerate(target))
    x: Var[Any, Any] = Tape[Any]().leaf(array)
    try:
        expected = array.reshape(asked)
    except ValueError:
        with pytest.raises(ShapeError, match=r"^reshape: argument 'shape': expected"):
            x.reshape(asked)
    else:
        got = x.reshape(asked).numpy()
        assert (got.shape, got.tolist()) == (expected.shape, expected.tolist())


@pytest.mark.filterwarnings("ignore::dgrr.tape.BroadcastWarning")
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=4))
def test_broadcasts_are_numpys(shapes: hnp.BroadcastableShapes) -> None:
    a, b = (counted(shape) for shape in shapes.input_shapes)
    tape: Tape[Any] = Tape()
    x, y = tape.leaf(a), tape.leaf(b + 1)
    out = x * y
    assert out.numpy().shape == shapes.result_shape
    assert out.numpy().tolist() == (a * (b + 1)).tolist()
    grads = tape.backward_dense(out, np.ones(shapes.result_shape))
    extra = out.numpy().ndim - a.ndim
    repeated = tuple(range(extra)) + tuple(
        extra + i for i, s in enumerate(a.shape) if s == 1 and shapes.result_shape[extra + i] != 1
    )
    full = np.broadcast_to(b + 1, shapes.result_shape)
    expected = full.sum(axis=repeated).reshape(a.shape)
    assert grads[x].numpy().tolist() == expected.tolist()  # type: ignore[union-attr]
