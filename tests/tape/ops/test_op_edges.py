"""Edges of the elementwise ops and losses: ties, zeros, NaN, bounds, and values by an independent way."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import DomainError, Tape, ops

Array = npt.NDArray[Any]
INF, NAN = math.inf, math.nan


def gradients(function: Callable[..., Any], *arrays: Any, seed: Any = None) -> list[list[float]]:
    """The value and the gradient by each array, for a seed of ones or the given one."""
    tape: Tape[Any] = Tape()
    leaves = [tape.leaf(np.array(a, np.float64)) for a in arrays]
    out = function(*leaves)
    grads = tape.backward_dense(out, np.ones(tuple(out.shape)) if seed is None else np.array(seed, np.float64))
    found = [out.numpy(), *(grads[leaf].numpy() for leaf in leaves)]  # type: ignore[union-attr]
    return [np.asarray(a).ravel().tolist() for a in found]


def same(got: list[float], expected: list[float]) -> bool:
    """Equal to the sign of zeros; NaN equals itself."""
    return [repr(float(x)) for x in got] == [repr(float(x)) for x in expected]


POINTS: list[tuple[str, Callable[..., Any], list[list[float]], list[list[float]]]] = [
    ("abs", ops.abs, [[-2, -0.0, 0, 3, -INF, NAN]], [[2, 0, 0, 3, INF, NAN], [-1, 0, 0, 1, -1, 0]]),
    ("maximum", ops.maximum, [[1, 2, 3, -0.0, 0, NAN, 1], [2, 1, 3, 0, -0.0, 1, NAN]],
     [[2, 2, 3, 0, 0, NAN, NAN], [0, 1, 0.5, 0.5, 0.5, 0.5, 0.5], [1, 0, 0.5, 0.5, 0.5, 0.5, 0.5]]),
    ("minimum", ops.minimum, [[1, 2, 3, -0.0, 0, NAN, 1], [2, 1, 3, 0, -0.0, 1, NAN]],
     [[1, 1, 3, -0.0, -0.0, NAN, NAN], [1, 0, 0.5, 0.5, 0.5, 0.5, 0.5], [0, 1, 0.5, 0.5, 0.5, 0.5, 0.5]]),
    ("clamp", lambda x: ops.clamp(x, -1.0, 2.0), [[-2, -1, 0, 2, 3, NAN, INF]],
     [[-1, -1, 0, 2, 2, NAN, 2], [0, 0, 1, 0, 0, 0, 0]]),
    ("clamp with crossed bounds", lambda x: ops.clamp(x, 1.0, -1.0), [[-2, 0, 2]], [[-1, -1, -1], [0, 0, 0]]),
    ("clamp with one bound", lambda x: ops.clamp(x, 0.0, INF), [[-2, -0.0, 5]], [[0, 0, 5], [0, 0, 1]]),
    ("leaky_relu", lambda x: ops.leaky_relu(x, 0.25), [[-2, -0.0, 0, 4, -INF]],
     [[-0.5, -0.0, 0, 4, -INF], [0.25, 0.25, 0.25, 1, 0.25]]),
    ("elu", lambda x: ops.elu(x, 2.0), [[-INF, -0.0, 0, 4, 1000]], [[-2, -0.0, 0, 4, 1000], [0, 2, 2, 1, 1]]),
    ("softplus", ops.softplus, [[-INF, -1000, 0, 1000, INF]], [[0, 0, math.log(2), 1000, INF], [0, 0, 0.5, 1, 1]]),
    ("inv", ops.inv, [[2, -4, 0, -0.0, INF]], [[0.5, -0.25, INF, -INF, 0], [-0.25, -0.0625, -INF, -INF, -0.0]]),
    ("rsqrt", ops.rsqrt, [[4, 0.25, 0, -0.0, -1, INF]],
     [[0.5, 2, INF, -INF, NAN, 0], [-0.0625, -4, -INF, INF, NAN, -0.0]]),
    ("square", ops.square, [[-3, 0, INF]], [[9, 0, INF], [-6, 0, INF]]),
    ("log1p", ops.log1p, [[0, 1, -1, -2]], [[0, math.log(2), -INF, NAN], [1, 0.5, INF, -1]]),
    ("power", lambda x: ops.power(x, 0.5), [[4, 0, 1, -1]], [[2, 0, 1, NAN], [0.25, INF, 0.5, NAN]]),
    ("a float that is whole", lambda x: ops.power(x, 2.0), [[-3, 0]], [[9, 0], [-6, 0]]),
    ("gelu", ops.gelu, [[0, 40, -40]], [[0, 40, -0.0], [0.5, 1, 0]]),
    ("silu", ops.silu, [[0, 1000, -1000]], [[0, 1000, -0.0], [0.5, 1, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "inputs", "expected"), [p[1:] for p in POINTS], ids=[p[0] for p in POINTS])
def test_values_and_gradients_at_the_edges(
    function: Callable[..., Any], inputs: list[list[float]], expected: list[list[float]]
) -> None:
    got = gradients(function, *inputs)
    assert len(got) == len(expected)
    for found, wanted in zip(got, expected, strict=True):
        assert same(found, wanted), (found, wanted)


def test_safe_log_is_the_logarithm_of_a_shifted_number() -> None:
    value, slope = gradients(ops.safe_log, [0.0, 1.0, -1.0])
    assert value[:2] == pytest.approx([math.log(1e-6), math.log1p(1e-6)], rel=1e-12)
    assert math.isnan(value[2])
    assert slope[:2] == pytest.approx([1e6, 1 / (1 + 1e-6)], rel=1e-12)
    assert gradients(lambda x: ops.safe_log(x, 0.5), [0.0]) == [[pytest.approx(math.log(0.5))], [2.0]]


def test_mse_grad_is_the_gradient_of_mse_loss() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 5))
    _, by_a, by_b = gradients(ops.mse_loss, a, b)
    got = ops.mse_grad(Tape[Any]().leaf(a), b).numpy()
    assert got.ravel().tolist() == by_a
    assert (-got).ravel().tolist() == by_b


def test_huber_loss_by_hand() -> None:
    value, by_a, by_b = gradients(lambda a, b: ops.huber_loss(a, b, 2.0), [0, 1, 5, -9], [0, 0, 1, 0])
    assert value == [(0 + 0.5 + 2 * (4 - 1) + 2 * (9 - 1)) / 4]
    assert by_a == [0, 0.25, 0.5, -0.5]
    assert by_b == [-0.0, -0.25, -0.5, 0.5]


def test_binary_cross_entropy_by_its_definition() -> None:
    x, t = np.array([-3.0, 0.5, 2.0]), np.array([0.0, 1.0, 0.25])
    p = [1 / (1 + math.exp(-v)) for v in x]
    expected = -sum(b * math.log(a) + (1 - b) * math.log(1 - a) for a, b in zip(p, t, strict=True)) / 3
    value, by_x, by_t = gradients(ops.binary_cross_entropy_with_logits, x, t)
    assert value == pytest.approx([expected], rel=1e-13)
    assert by_x == pytest.approx([(a - b) / 3 for a, b in zip(p, t, strict=True)], rel=1e-12)
    assert by_t == pytest.approx((-x / 3).tolist(), rel=1e-13)
    assert gradients(ops.binary_cross_entropy_with_logits, [1e4, -1e4], [0.0, 0.0])[0] == [5e3]


LOGITS = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0], [2.0, 2.0, 2.0]])
LABELS = np.array([2, 1, 0])


def target(smoothing: float) -> Array:
    return np.eye(3)[LABELS] * (1 - smoothing) + smoothing / 3


def by_definition(targets: Array, counted: list[bool]) -> tuple[float, Array]:
    """The mean over the rows that count of ``-sum(t log p)``, and its gradient by the logits."""
    p = np.array([[math.exp(x) / sum(map(math.exp, row)) for x in row] for row in LOGITS.tolist()])
    rows = [-sum(t * math.log(q) for t, q in zip(*pair, strict=True)) for pair in zip(targets, p, strict=True)]
    weights = np.array(counted) / sum(counted)
    slope = (p * targets.sum(1, keepdims=True) - targets) * weights[:, None]
    return float(sum(w * r for w, r in zip(weights, rows, strict=True))), slope


@pytest.mark.parametrize("ignored", [None, 1, -100])
@pytest.mark.parametrize("smoothing", [0.0, 0.3, 1.0])
def test_cross_entropy_by_its_definition(smoothing: float, ignored: int | None) -> None:
    value, slope = by_definition(target(smoothing), [label != ignored for label in LABELS.tolist()])
    attrs: dict[str, Any] = {"label_smoothing": smoothing, "ignore_index": ignored}
    tape: Tape[Any] = Tape()
    x = tape.leaf(LOGITS)
    for loss in (
        ops.cross_entropy(x, tape.const(LABELS), **attrs),
        ops.nll_loss(ops.log_softmax(x), tape.const(LABELS), **attrs),
    ):
        grad = tape.backward_scalar(loss)[x]
        assert loss.item() == pytest.approx(value, rel=1e-13)
        assert grad.numpy() == pytest.approx(slope, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_soft_cross_entropy_by_its_definition(smoothing: float) -> None:
    targets = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [0.0, 2.0, 0.5]])
    smoothed = targets * (1 - smoothing) + smoothing / 3
    value, slope = by_definition(smoothed, [True] * 3)
    found, by_logits, _ = gradients(lambda x, t: ops.soft_cross_entropy(x, t, smoothing), LOGITS, targets)
    assert found == pytest.approx([value], rel=1e-13)
    assert by_logits == pytest.approx(slope.ravel().tolist(), rel=1e-12, abs=1e-15)


def test_an_ignored_row_cannot_be_seen() -> None:
    logits = np.array([[1.0, 2.0], [NAN, INF]])
    tape: Tape[Any] = Tape()
    x = tape.leaf(logits)
    loss = ops.nll_loss(x, tape.const(np.array([0, -1])), ignore_index=-1)
    assert loss.item() == -1.0
    assert tape.backward_scalar(loss)[x].numpy().tolist() == [[-1.0, 0.0], [0.0, 0.0]]


def test_the_mean_of_no_rows_is_nan() -> None:
    tape: Tape[Any] = Tape()
    loss = ops.cross_entropy(tape.leaf(LOGITS), tape.const(np.array([1, 1, 1])), ignore_index=1)
    assert math.isnan(loss.item())


@pytest.mark.parametrize("smoothing", [-0.1, 1.1, NAN])
def test_smoothing_is_a_share(smoothing: float) -> None:
    x, labels = Tape[Any]().leaf(LOGITS), LABELS
    for function, second in ((ops.cross_entropy, labels), (ops.nll_loss, labels), (ops.soft_cross_entropy, LOGITS)):
        with pytest.raises(DomainError, match="argument 'label_smoothing': expected a number from 0 to 1, got"):
            function(x, second, label_smoothing=smoothing)  # type: ignore[operator]


@pytest.mark.parametrize("delta", [0.0, -1.0, INF, NAN])
def test_delta_is_positive_and_finite(delta: float) -> None:
    x = Tape[Any]().leaf(LOGITS)
    with pytest.raises(DomainError, match="^huber_loss: argument 'delta': expected a positive finite number, got"):
        ops.huber_loss(x, x, delta)
