"""Norms: what is normalised together, the edges, and which norms are one another in other words."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, ShapeError, Tape, gradcheck, ops
from dgrr.tape.ops import OPS

RNG = np.random.default_rng(0)


def drawn(*shape: int, dtype: Any = np.float64) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def result(function: Any, *arrays: Any) -> Any:
    tape: Tape[Any] = Tape()
    return function(*[tape.leaf(a) for a in arrays]).numpy()


def gradients(function: Any, *arrays: Any, seed: Any = None) -> list[Any]:
    tape: Tape[Any] = Tape()
    leaves = [tape.leaf(np.asarray(a, np.float64)) for a in arrays]
    out = function(*leaves)
    grads = tape.backward_dense(out, np.ones(tuple(out.shape)) if seed is None else seed)
    return [np.asarray(grads[leaf]) for leaf in leaves]


def same(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


@pytest.mark.parametrize(("name", "op"), [("layer_norm", "layer_norm"), ("batch_norm_channel_first", "batch_norm")])
def test_documented_names_are_covered(name: str, op: str) -> None:
    assert name in OPS[op].covers


def test_the_variance_is_biased() -> None:
    assert result(lambda x: ops.layer_norm(x, eps=0.0), [[3.0, -3.0, 3.0, -3.0]]).tolist() == [[1.0, -1.0, 1.0, -1.0]]
    assert result(lambda x: ops.layer_norm(x, eps=7.0), [[1.0, 7.0]]).tolist() == [[-0.75, 0.75]]  # 3 / sqrt(9 + 7)


def test_the_mean_is_taken_away_before_squaring() -> None:
    """In one pass, E[x²] - E[x]², nothing would be left of the variance."""
    x = np.float32(4096) + np.array([[1, -1, 1, -1]], np.float32) / 8
    assert result(lambda x: ops.layer_norm(x, eps=0.0), x).tolist() == [[1, -1, 1, -1]]


def test_equal_elements_become_the_bias() -> None:
    x, w, b = np.full((2, 3), 5.0), drawn(3), np.array([1.0, -2.0, 0.5])
    assert result(ops.layer_norm, x, w, b).tolist() == [b.tolist()] * 2
    assert result(ops.layer_norm, np.zeros((2, 1))).tolist() == [[0.0], [0.0]]


def test_equal_elements_without_eps_are_nan() -> None:
    assert np.isnan(result(lambda x: ops.layer_norm(x, eps=0.0), np.full((1, 3), 5.0))).all()
    assert np.isnan(result(lambda x: ops.rms_norm(x, eps=0.0), np.zeros((1, 3)))).all()


def test_nothing_is_known_of_a_row_with_an_infinity() -> None:
    y = result(ops.layer_norm, [[1.0, np.inf, 2.0], [1.0, 2.0, 3.0]])
    assert np.isnan(y[0]).all() and np.isfinite(y[1]).all()


def test_rms_norm_keeps_the_mean() -> None:
    assert result(lambda x: ops.rms_norm(x, eps=0.0), [[2.0, 2.0, 2.0]]).tolist() == [[1.0, 1.0, 1.0]]
    x = np.array([[3.0, 4.0]])
    assert result(lambda x, w: ops.rms_norm(x, w, eps=3.5), x, [2.0, -2.0]).tolist() == [[1.5, -2.0]]  # over sqrt(16)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("norm", "shape", "axes", "channel"),
    [
        (ops.layer_norm, (5, 37), (1,), 1),
        (ops.batch_norm, (4, 3, 5, 7), (0, 2, 3), 1),
        (ops.batch_norm, (300, 3), (0,), 1),
        (ops.instance_norm, (4, 3, 21), (2,), 1),
    ],
)
def test_a_norm_has_the_bits_of_the_ops_that_it_stands_for(
    norm: Any, shape: tuple[int, ...], axes: tuple[int, ...], channel: int, dtype: Any
) -> None:
    x, w, b = drawn(*shape, dtype=dtype), drawn(shape[channel], dtype=dtype), drawn(shape[channel], dtype=dtype)

    def composed(x: Any, w: Any, b: Any) -> Any:
        sizes = (-1, *(1,) * (len(shape) - 1 - channel))
        normal = (x - x.mean(axes, True)) * ops.rsqrt(x.var(axes, True) + 1e-5)
        return normal * w.reshape(*sizes) + b.reshape(*sizes)

    assert same(result(norm, x, w, b), result(composed, x, w, b))


@pytest.mark.parametrize("norm", [ops.layer_norm, ops.batch_norm, ops.instance_norm])
def test_no_weight_is_one_and_no_bias_is_nothing(norm: Any) -> None:
    x, w, b = drawn(3, 4), drawn(4), drawn(4)
    assert same(result(norm, x), result(norm, x, np.ones(4)))
    assert same(result(lambda x, b: norm(x, None, b), x, b), result(norm, x, np.ones(4), b))
    assert same(result(norm, x, w), result(norm, x, w, np.full(4, -0.0)))


def test_without_a_bias_negative_zeros_stay() -> None:
    x = np.array([[-1.0, 0.0, 1.0]])
    assert np.signbit(result(ops.layer_norm, x, [1.0, -1.0, 1.0])).tolist() == [[True, True, False]]


def test_a_layer_may_be_all_there_is() -> None:
    x, w, b = drawn(70), drawn(70), drawn(70)
    assert same(result(ops.layer_norm, x, w, b), result(ops.layer_norm, x[None], w, b)[0])
    seed = drawn(70)
    one = gradients(ops.layer_norm, x, w, b, seed=seed)
    many = gradients(ops.layer_norm, x[None], w, b, seed=seed[None])
    assert all(np.array_equal(a.ravel(), c.ravel()) for a, c in zip(one, many, strict=True))


def test_a_batch_of_one_sample_has_its_channels_first() -> None:
    x, w, b = drawn(3, 4, 5), drawn(3), drawn(3)
    first = result(lambda x, w, b: ops.batch_norm(x, w, b, channel_axis=0), x, w, b)
    assert same(first, result(ops.instance_norm, x[None], w, b)[0])
    assert same(first, result(lambda x, w, b: ops.batch_norm(x, w, b, channel_axis=-3), x, w, b))


def test_channels_that_are_all_there_is_are_their_own_means() -> None:
    b = drawn(4)
    assert result(lambda x, b: ops.batch_norm(x, None, b, channel_axis=0), drawn(4), b).tolist() == b.tolist()


def test_channels_may_be_last() -> None:
    """Whole numbers, of which every sum is exact in any order."""
    x = RNG.integers(-8, 8, (4, 3, 8)).astype(np.float64)
    last = result(lambda x: ops.batch_norm(x, channel_axis=-1), x.transpose(0, 2, 1))
    assert same(np.ascontiguousarray(last.transpose(0, 2, 1)), result(ops.batch_norm, x))


def test_one_group_is_a_layer_and_as_many_as_channels_are_instances() -> None:
    x, flat, w, b = drawn(3, 6, 5), drawn(3, 6), drawn(6), drawn(6)
    one = result(lambda x, w, b: ops.group_norm(x, 1, w, b), flat, w, b)
    assert same(one, result(ops.layer_norm, flat, w, b))
    each = result(lambda x, w, b: ops.group_norm(x, 6, w, b), x, w, b)
    assert same(each, result(ops.instance_norm, x, w, b))


def test_groups_are_of_neighbouring_channels() -> None:
    x = drawn(2, 6, 5)
    halves = [result(lambda x: ops.group_norm(x, 1), x[:, half]) for half in (slice(0, 3), slice(3, 6))]
    assert same(result(lambda x: ops.group_norm(x, 2), x), np.concatenate(halves, axis=1))


@pytest.mark.parametrize("shape", [(4, 3, 5), (70, 3)])
def test_inference_with_the_batchs_own_statistics_is_batch_norm(shape: tuple[int, ...]) -> None:
    x, w, b = drawn(*shape), drawn(3), drawn(3)
    axes = tuple(a for a in range(len(shape)) if a != 1)
    mean, variance = result(lambda x: x.mean(axes), x), result(lambda x: x.var(axes), x)
    assert same(result(ops.batch_norm_inference, x, mean, variance, w, b), result(ops.batch_norm, x, w, b))


def test_inference_below_a_variance_of_minus_eps_is_nan() -> None:
    y = result(ops.batch_norm_inference, [[1.0, 2.0]], [0.0, 0.0], [-1.0, 4.0])
    assert np.isnan(y[0, 0]) and y[0, 1] == pytest.approx(1, abs=1e-5)


def test_inference_has_a_gradient_by_everything() -> None:
    arrays = (drawn(4, 3, 2), drawn(3), np.abs(drawn(3)) + 0.5, drawn(3), drawn(3))
    assert gradcheck(ops.batch_norm_inference, *arrays).ok
    found = gradients(ops.batch_norm_inference, [[5.0]], [1.0], [3.0], [2.0], [7.0], seed=[[1.0]])
    inv = 1 / np.sqrt(3 + 1e-5)
    expected = [2 * inv, -2 * inv, -0.5 * inv**3 * 4 * 2, 4 * inv, 1.0]
    assert [float(g.ravel()[0]) for g in found] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("norm", "rows"),
    [
        (ops.layer_norm, lambda a: a),
        (ops.batch_norm, lambda a: a.T),
        (lambda x, eps: ops.group_norm(x, 2, eps=eps), lambda a: a.reshape(12, 4)),
    ],
)
def test_shifts_and_scalings_have_no_gradient(norm: Any, rows: Any) -> None:
    x, seed = drawn(6, 8), drawn(6, 8)
    (dx,) = gradients(lambda x: norm(x, eps=0.0), x, seed=seed)
    assert np.abs(rows(dx).sum(1)).max() < 1e-12
    assert np.abs((rows(dx) * rows(x)).sum(1)).max() < 1e-12


def test_third_derivatives() -> None:
    """Of ``sum(y³)`` along three directions, beside a central difference of the second."""
    x, directions = drawn(2, 5), [drawn(2, 5) for _ in range(3)]

    def second(at: Any, third: Any = None) -> float:
        tape: Tape[Any] = Tape()
        leaf = tape.leaf(at)
        y = ops.layer_norm(leaf)
        value: Any = (y * y * y).sum()
        for v in directions[:2] if third is None else directions:
            gradient: Any = tape.backward_scalar(value, create_graph=True)[leaf]
            value = (gradient * v).sum()
        return float(value)

    h, v = 1e-5, directions[2]
    numeric = (second(x + h * v) - second(x - h * v)) / (2 * h)
    assert second(x, v) == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize(
    ("function", "shape", "channels"),
    [
        (ops.layer_norm, (0, 3), 3),
        (ops.layer_norm, (3, 0), 0),
        (ops.batch_norm, (0, 3, 2), 3),
        (ops.batch_norm, (2, 3, 0), 3),
        (ops.batch_norm, (0, 3), 3),
        (lambda *a: ops.group_norm(a[0], 3, *a[1:]), (2, 3, 0), 3),
        (ops.instance_norm, (2, 0, 3), 0),
    ],
)
def test_of_nothing_the_parameters_have_no_gradient(function: Any, shape: tuple[int, ...], channels: int) -> None:
    dx, dw, db = gradients(function, np.zeros(shape), np.ones(channels), np.ones(channels))
    assert dx.shape == shape
    assert dw.tolist() == db.tolist() == [0.0] * channels
    assert not np.signbit([dw, db]).any()


@pytest.mark.parametrize(
    "norm",
    [
        ops.layer_norm, ops.rms_norm, ops.batch_norm, ops.instance_norm, lambda x: ops.group_norm(x, 2),
        lambda x: ops.batch_norm_inference(x, np.zeros(4), np.ones(4)),
    ],
)  # fmt: skip
def test_a_norm_is_one_node(norm: Any, tape: Tape[Any]) -> None:
    x = tape.leaf(drawn(3, 4))
    before = len([node for node in tape if node.op is not None])
    norm(x)
    assert len([node for node in tape if node.op is not None]) == before + 1


def test_an_eps_may_be_a_whole_number() -> None:
    x = drawn(3, 4)
    assert same(result(lambda x: ops.layer_norm(x, eps=1), x), result(lambda x: ops.layer_norm(x, eps=1.0), x))


def test_eps_is_rounded_to_the_element_type() -> None:
    x = drawn(3, 4, dtype=np.float32)
    rounded = float(np.float32(1e-5))
    assert same(result(ops.layer_norm, x), result(lambda x: ops.layer_norm(x, eps=rounded), x))


def test_group_norm_refuses_what_its_op_refuses(tape: Tape[Any]) -> None:
    x = tape.leaf(drawn(2, 3, 4))
    with pytest.raises(ShapeError, match="'num_groups': expected a divisor of the 3 channels of .2, 3, 4., got 2"):
        ops.group_norm(x, 2)
    with pytest.raises(DomainError, match="'eps': expected a finite number of at least 0, got -1"):
        ops.group_norm(x, 3, eps=-1)
