"""Pools and upsampling: the layers hand what they were given to ops that have tests of their own."""

from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import ShapeError, Tape, nn, ops

X = np.random.default_rng(0).standard_normal((2, 3, 6, 7))


def windows(x: npt.NDArray[Any], kernel: Any, stride: Any, padding: Any, fill: float, dilation: Any = (1, 1)) -> Any:
    """The cells of each window of the last two axes, along a last axis."""
    padded = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)), constant_values=fill)
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    counts = [(n - span) // s + 1 for n, span, s in zip(padded.shape[2:], spans, stride, strict=True)]
    cells = [
        padded[
            ...,
            i * d0 : i * d0 + counts[0] * stride[0] : stride[0],
            j * d1 : j * d1 + counts[1] * stride[1] : stride[1],
        ]
        for (i, j), (d0, d1) in product(product(*map(range, kernel)), [dilation])
    ]
    return np.stack([cell[..., : counts[0], : counts[1]] for cell in cells], -1)


def test_max_pool(run: Any) -> None:
    assert run(nn.MaxPool2d(2), {}, X).tobytes() == windows(X, (2, 2), (2, 2), (0, 0), -np.inf).max(-1).tobytes()
    y = run(nn.MaxPool((3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), {}, X)
    assert y.tobytes() == windows(X, (3, 2), (2, 1), (1, 0), -np.inf, (1, 2)).max(-1).tobytes()


def test_avg_pool(run: Any) -> None:
    assert run(nn.AvgPool2d(2), {}, X) == pytest.approx(windows(X, (2, 2), (2, 2), (0, 0), 0).mean(-1), rel=1e-12)
    whole = run(nn.AvgPool((3, 2), stride=2, padding=1), {}, X)
    assert whole == pytest.approx(windows(X, (3, 2), (2, 2), (1, 1), 0).mean(-1), rel=1e-12)
    real = run(nn.AvgPool((3, 2), stride=2, padding=1, count_include_pad=False), {}, X)
    assert real == pytest.approx(np.nanmean(windows(X, (3, 2), (2, 2), (1, 1), np.nan), -1), rel=1e-12)


@pytest.mark.parametrize("beta", [1.0, -2.0, 30.0])
def test_smooth_max_pool(run: Any, beta: float) -> None:
    cells = windows(X, (2, 3), (1, 2), (0, 1), -np.inf * np.sign(beta))
    expected = np.log(np.exp(beta * cells).sum(-1)) / beta
    y = run(nn.SmoothMaxPool((2, 3), (1, 2), (0, 1), beta), {}, X)
    assert y == pytest.approx(expected, rel=1e-10, abs=1e-12)


def adaptive(x: npt.NDArray[Any], size: tuple[int, int], reduce: Any) -> npt.NDArray[Any]:
    def cut(n: int, m: int) -> list[slice]:
        return [slice(floor(i * m / n), ceil((i + 1) * m / n)) for i in range(n)]

    rows, columns = (cut(n, m) for n, m in zip(size, x.shape[2:], strict=True))
    return np.stack([np.stack([reduce(x[..., r, c], (-1, -2)) for c in columns], -1) for r in rows], -2)


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 5), (6, 7)])
def test_adaptive_pools(run: Any, size: tuple[int, int]) -> None:
    assert run(nn.AdaptiveAvgPool(size), {}, X) == pytest.approx(adaptive(X, size, np.mean), rel=1e-12)
    assert run(nn.AdaptiveMaxPool(size), {}, X).tobytes() == adaptive(X, size, np.max).tobytes()


def test_an_int_counts_for_every_axis(run: Any) -> None:
    pairs: list[tuple[nn.Layer, nn.Layer]] = [
        (nn.MaxPool2d(3, 2, 1), nn.MaxPool((3, 3), (2, 2), (1, 1))),
        (nn.AvgPool2d(3, 2, 1), nn.AvgPool((3, 3), (2, 2), (1, 1))),
        (nn.MaxPool1d(3, 2, 1), nn.MaxPool((3,), (2,), (1,))),
        (nn.AvgPool1d(3, 2, 1), nn.AvgPool((3,), (2,), (1,))),
        (nn.AdaptiveAvgPool2d(3), nn.AdaptiveAvgPool((3, 3))),
        (nn.AdaptiveAvgPool1d(3), nn.AdaptiveAvgPool((3,))),
        (nn.AdaptiveMaxPool2d(3), nn.AdaptiveMaxPool((3, 3))),
        (nn.AdaptiveMaxPool1d(3), nn.AdaptiveMaxPool((3,))),
    ]
    for spread, written in pairs:
        assert run(spread, {}, X).tobytes() == run(written, {}, X).tobytes()


def test_upsampling(run: Any) -> None:
    assert run(nn.UpsampleNearest((2, 3)), {}, X).tobytes() == X.repeat(2, 2).repeat(3, 3).tobytes()
    rows, columns = np.arange(9) * 6 // 9, np.arange(4) * 7 // 4
    assert run(nn.UpsampleNearest(size=(9, 4)), {}, X).tobytes() == X[:, :, rows][..., columns].tobytes()

    corners = run(nn.UpsampleBilinear((11, 13), align_corners=True), {}, X)
    assert corners[..., ::2, ::2] == pytest.approx(X, rel=1e-12)
    between = (X[..., :-1, :-1] + X[..., 1:, :-1] + X[..., :-1, 1:] + X[..., 1:, 1:]) / 4
    assert corners[..., 1::2, 1::2] == pytest.approx(between, rel=1e-12)
    halves = run(nn.UpsampleBilinear((12, 14)), {}, X)
    inner = 0.75 * X[..., :-1, :] + 0.25 * X[..., 1:, :]
    inner = 0.75 * inner[..., :-1] + 0.25 * inner[..., 1:]
    assert halves[..., 1:-1:2, 1:-1:2] == pytest.approx(inner, rel=1e-12)


LAYERS: list[nn.Layer] = [nn.MaxPool2d(2), nn.AvgPool2d(2), nn.SmoothMaxPool((2, 2)), nn.AdaptiveAvgPool2d(2)]


@pytest.mark.parametrize("layer", LAYERS)
def test_pools_have_no_parameters(layer: nn.Layer) -> None:
    assert layer.init(0) == layer.init_state() == {}


def test_gradients_reach_the_input() -> None:
    tape: Tape[Any] = Tape()
    x = tape.param(X)
    model = nn.Sequential(*LAYERS[:1], nn.AdaptiveAvgPool2d(1), nn.Flatten())
    grad = tape.backward_dense(ops.sum(model({}, x)))[x]
    assert grad is not None
    assert grad.numpy().sum() == pytest.approx(6, rel=1e-12)
    assert set(np.unique(np.round(grad.numpy() * 9, 9))) == {0.0, 1.0}


def test_wrong_shapes_name_the_op(run: Any) -> None:
    with pytest.raises(ShapeError, match="^max_pool: argument"):
        run(nn.MaxPool2d(9), {}, X)


def test_windows_that_hang_over_the_end_and_borders_that_differ(run: Any) -> None:
    wide = np.pad(X, ((0, 0), (0, 0), (1, 2), (0, 2)), constant_values=-np.inf)
    expected = windows(wide, (3, 3), (3, 3), (0, 0), -np.inf).max(-1)
    assert run(nn.MaxPool2d(3, padding=((1, 0), (0, 1)), ceil_mode=True), {}, X).tobytes() == expected.tobytes()
    sums = windows(np.pad(X, ((0, 0), (0, 0), (0, 0), (0, 2))), (3, 3), (3, 3), (0, 0), 0).sum(-1)
    found = run(nn.AvgPool2d(3, ceil_mode=True), {}, X)
    assert found == pytest.approx(sums / np.array([9, 9, 3]), rel=1e-12)


def test_a_norm_of_each_window(run: Any) -> None:
    expected = np.sqrt((windows(X, (2, 3), (1, 2), (0, 0), 0) ** 2).sum(-1))
    assert run(nn.LPPool(2, (2, 3), (1, 2)), {}, X) == pytest.approx(expected, rel=1e-12)


def test_layers_that_hand_on_to_ops(run: Any) -> None:
    x = Tape().leaf(X)
    pairs: list[tuple[nn.Layer, Any]] = [
        (nn.Upsample((3, 9), mode="bicubic", antialias=True), ops.interpolate(x, (3, 9), None, "bicubic", False, True)),
        (nn.Upsample(scale_factor=(0.5, 2.5)), ops.interpolate(x, None, (0.5, 2.5))),
        (nn.Pad(((1, 2), (-1, 3)), mode="wrap"), np.pad(X[..., 1:], ((0, 0), (0, 0), (1, 2), (0, 3)), "wrap")),
    ]
    for layer, expected in pairs:
        values = expected if isinstance(expected, np.ndarray) else expected.numpy()
        assert run(layer, {}, X).tobytes() == values.tobytes()
    even = X[..., :6]
    assert run(nn.PixelShuffle(2), {}, run(nn.PixelUnshuffle(2), {}, even)).tobytes() == even.tobytes()
