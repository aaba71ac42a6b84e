"""Products with vectors and with leading axes that broadcast, beside the same products written out."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import Tape, f64, gradcheck, ops

Array = npt.NDArray[Any]

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3,), (3,)), ((2, 3), (3,)), ((4, 2, 3), (3,)), ((3,), (3, 2)), ((3,), (4, 3, 2)), ((2, 3), (4, 3, 2)),
    ((5, 1, 2, 3), (4, 3, 2)), ((4, 2, 3), (5, 1, 3, 2)), ((1, 2, 3), (4, 3, 2)), ((4, 2, 3), (1, 3, 2)), ((0,), (0,)),
    ((0, 2, 3), (3, 1)), ((0, 2, 3), (1, 3, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_numpy_decides(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(-9, 9, a).astype(float), rng.integers(-9, 9, b).astype(float)  # whole: sums are exact
    tape = Tape(f64)
    x, y = tape.leaf(left), tape.leaf(right)
    out: Any = x @ y
    np.testing.assert_array_equal(out.numpy(), left @ right)
    g = rng.integers(-9, 9, out.shape).astype(float)
    grads = tape.backward_dense(out, g)
    expected = by_einsum(left, right, g)
    for leaf, wanted in zip((x, y), expected, strict=True):
        np.testing.assert_array_equal(grads[leaf].numpy(), wanted)  # type: ignore[union-attr]


def by_einsum(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """The gradients with every operand as matrices with all leading axes, summed where they were broadcast."""
    left, right = matrices = np.atleast_2d(a), b if b.ndim > 1 else b[:, None]
    leading = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left, right = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (left, right))
    given = g.reshape((*leading, left.shape[-2], right.shape[-1]))
    found = np.einsum("...mn,...kn->...mk", given, right), np.einsum("...mk,...mn->...kn", left, given)
    made = []
    for gradient, target, shape in zip(found, matrices, (a.shape, b.shape), strict=True):
        padded = (1,) * (gradient.ndim - target.ndim) + target.shape
        axes = tuple(i for i, (n, m) in enumerate(zip(gradient.shape, padded, strict=True)) if n != m)
        made.append(gradient.sum(axes).reshape(shape))
    return made[0], made[1]


@pytest.mark.parametrize(("a", "b"), [((3,), (2, 3, 2)), ((2, 1, 2, 3), (3, 3, 2))])
def test_gradients_are_slopes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    assert gradcheck(ops.matmul, rng.standard_normal(a), rng.standard_normal(b)).ok


def test_a_batch_of_one_has_the_bits_of_its_row_in_a_larger_batch() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 2, 300)), rng.standard_normal((5, 300, 3))
    tape = Tape(f64)
    whole = (tape.leaf(a) @ tape.leaf(b)).numpy()
    for i in range(5):
        assert (tape.leaf(a[i]) @ tape.leaf(b[i])).numpy().tobytes() == whole[i].tobytes()


def test_one_node_broadcasts(tape: Tape[Any]) -> None:
    _ = tape.leaf(np.ones((2, 3))) @ tape.leaf(np.ones((4, 3, 2)))
    assert [node.op_name for node in tape] == ["leaf", "leaf", "matmul"]
