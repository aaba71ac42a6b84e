"""Joining, stacking, splitting and padding: what is composed of ops, and the edges of the ops themselves."""

# Lambdas carry no types.
# pyright: basic
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CapturedStep, evaluate
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import AnyTensor, DomainError, DTypeError, ShapeError, Tape, TapeError, ops


def ascending(*shape: int, start: float = 0.0) -> Any:
    return np.arange(start, start + np.prod(shape)).reshape(shape)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_is_numpys_and_gives_each_part_its_gradient(tape: Tape[Any], count: int, axis: int) -> None:
    arrays = [ascending(*((2 + i, 3) if axis == 0 else (2, 3 + i)), start=100.0 * i) for i in range(count)]
    xs = [tape.leaf(a) for a in arrays]
    out = ops.concat(xs, axis)
    assert np.array_equal(out.numpy(), np.concatenate(arrays, axis))
    seed = ascending(*out.shape, start=1.0)
    if count > 1:
        grads = tape.backward_dense(out, seed)
        cuts = np.cumsum([a.shape[axis] for a in arrays])[:-1]
        for x, expected in zip(xs, np.split(seed, cuts, axis), strict=True):
            assert np.array_equal(grads[x], expected)  # type: ignore[arg-type]


def test_concat_records_one_op_less_than_there_are_parts(tape: Tape[Any]) -> None:
    ops.concat([tape.leaf([float(i)]) for i in range(6)])
    assert [node.op_name for node in tape] == ["leaf"] * 6 + ["append"] * 5


def test_concat_takes_arrays_and_tensors_beside_vars(tape: Tape[Any]) -> None:
    out = ops.concat([np.array([1.0]), np.array([2.0]), tape.leaf([3.0]), AnyTensor.leaf([4.0]), [5.0]])
    assert out.numpy().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_concat_of_tensors_is_a_tensor() -> None:
    out: Any = ops.concat([AnyTensor.leaf([1.0]), AnyTensor.leaf([2.0])])
    assert isinstance(out, AnyTensor)
    assert out.array.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack_is_numpys(tape: Tape[Any], axis: int) -> None:
    arrays = [ascending(2, 3, start=10.0 * i) for i in range(3)]
    xs = [tape.leaf(a) for a in arrays]
    out = ops.stack(xs, axis)
    assert np.array_equal(out.numpy(), np.stack(arrays, axis))
    seed = ascending(*out.shape)
    grads = tape.backward_dense(out, seed)
    for i, x in enumerate(xs):
        assert np.array_equal(grads[x], np.take(seed, i, axis))  # type: ignore[arg-type]


def test_stack_of_scalars_is_a_vector(tape: Tape[Any]) -> None:
    assert ops.stack([tape.leaf(1.0), tape.leaf(2.0)]).numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("parts", "axis"), [(2, 0), (3, 1), (1, 0), ([1, 3], 0), ([0, 2, 4], -1), ((4,), 0)])
def test_split_undoes_concat(tape: Tape[Any], parts: Any, axis: int) -> None:
    x = tape.leaf(ascending(4, 6))
    pieces = ops.split(x, parts, axis)
    sizes = [x.shape[axis] // parts] * parts if isinstance(parts, int) else list(parts)
    assert [piece.shape[axis] for piece in pieces] == sizes
    assert np.array_equal(np.concatenate([p.numpy() for p in pieces], axis), x.numpy())
    assert {node.op_name for node in tape} == {"leaf", "narrow"}


def test_the_gradient_of_one_part_leaves_the_others_zero(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(5))
    _, middle, _ = ops.split(x, [1, 3, 1])
    grads = tape.backward_dense(middle, np.array([1.0, 2.0, 3.0]))
    assert np.asarray(grads[x]).tolist() == [0.0, 1.0, 2.0, 3.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: ops.concat([]), ShapeError, "concat: argument 'xs': expected at least one array, got none"),
        (lambda x: ops.stack([]), ShapeError, "stack: argument 'xs': expected at least one array, got none"),
        (lambda x: ops.concat([np.ones(2), [1.0]]), TapeError, "concat: expected a Var among the arguments"),
        (lambda x: ops.concat([x], 2), ShapeError, "concat: argument 'axis': expected an axis from -2 to 1, got 2"),
        (lambda x: ops.concat([x, x], 2), ShapeError, "concat: argument 'axis': expected an axis from -2 to 1, got 2"),
        (lambda x: ops.concat([x, np.ones((2, 2))]), ShapeError, r"append: argument 'b': expected shape \(n, 4\)"),
        (lambda x: ops.concat([x, np.ones((2, 4), np.float32)]), DTypeError, "append: argument 'a': expected float32"),
        (lambda x: ops.stack([x, np.ones((3, 4))]), ShapeError, r"shape \(2, 4\) as of the first, got \(3, 4\)"),
        (lambda x: ops.stack([x, x], 3), ShapeError, "stack: argument 'axis': expected an axis from -3 to 2, got 3"),
        (lambda x: ops.split(x, 3), ShapeError, "split: argument 'parts': expected a divisor of the 2 along"),
        (lambda x: ops.split(x, 0), ShapeError, "expected a divisor of the 2 along axis 0, got 0"),
        (lambda x: ops.split(x, [1, 2]), ShapeError, r"expected sizes that add up to 2, got \(1, 2\)"),
        (lambda x: ops.split(x, [3, -1]), ShapeError, r"expected sizes that add up to 2, got \(3, -1\)"),
        (lambda x: ops.split(x, 1, 2), ShapeError, "split: argument 'axis': expected an axis from -2 to 1, got 2"),
        (lambda x: ops.pad(x, [(1, 1), [1]]), ShapeError, "pad: argument 'widths'"),  # type: ignore[list-item]
        (lambda x: ops.pad(x, 1.5), DTypeError, "of tuples of whole numbers, got 1.5"),  # type: ignore[arg-type]
        (lambda x: ops.pad(x, ((1, 1), (0.5, 1))), DTypeError, "pad: argument 'widths'"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(tape: Tape[Any], call: Any, error: type[Exception], text: str) -> None:
    x = tape.leaf(ascending(2, 4))
    with pytest.raises(error, match=text):
        call(x)
    assert len(tape) == 1


@pytest.mark.parametrize("widths", [[(1, 2), (0, 3)], ((1, 2), (0, 3)), 2])
@pytest.mark.parametrize("value", [0, -1.5, np.float32(0.1)])
def test_pad_is_numpys(tape: Tape[Any], widths: Any, value: Any) -> None:
    x = tape.leaf(ascending(2, 4))
    out = ops.pad(x, widths, value)
    assert np.array_equal(out.numpy(), np.pad(x.numpy(), widths, constant_values=value))


def test_pad_keeps_integers_exact_and_takes_their_zero_by_default(tape: Tape[Any]) -> None:
    large = 2**62 + 1
    x = tape.leaf(np.array([1, large]))
    assert ops.pad(x, 1, large).numpy().tolist() == [large, 1, large, large]
    assert ops.pad(x, 1).numpy().tolist() == [0, 1, large, 0]
    with pytest.raises(DomainError, match="pad: argument 'value': expected a value of int64, got 9223372036854775808"):
        ops.pad(x, 1, 2**63)
    assert ops.pad(tape.leaf(np.array([True])), 1, 2).numpy().tolist() == [True, True, True]


def test_joining_is_captured_with_the_bits_of_the_eager_step() -> None:
    params = {"a": ascending(2, 3), "b": ascending(2, 1, start=7.0)}

    def loss_fn(p: Any, batch: Any) -> Any:
        joined = ops.concat([p["a"], p["b"], batch], 1)
        first, _, last = ops.split(ops.stack([joined, ops.pad(p["b"], ((0, 0), (0, 7)), 2.0)], 1), [3, 1, 4], 2)
        return ops.reduce_sum(ops.mul(first, ops.narrow(last, 0, 3, 2)))

    batch = ascending(2, 4, start=-3.0)
    expected = evaluate(loss_fn, params, batch)
    got = CapturedStep(loss_fn, params, Recipe(SGD(0.1))).gradients(batch)
    assert {name: g.tolist() for name, g in got.items()} == {n: g.tolist() for n, g in expected.grads.items()}
    assert any(g.any() for g in got.values())
