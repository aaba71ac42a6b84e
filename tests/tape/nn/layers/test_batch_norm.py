"""Batch norm: the batch's statistics in training, the running ones in evaluation, and how these follow."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import Context, DomainError, ShapeError, gradcheck, nn

SHAPES = [(5, 3), (4, 3, 7), (2, 3, 4, 5)]
LAYER = nn.BatchNorm(3)


def batch(shape: tuple[int, ...], seed: int = 0) -> npt.NDArray[Any]:
    return np.random.default_rng(seed).standard_normal(shape) * 2 + np.arange(3).reshape(3, *(1,) * (len(shape) - 2))


def statistics(x: npt.NDArray[Any], correction: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Mean and variance of each channel."""
    rows = np.moveaxis(x, 1, 0).reshape(3, -1)
    mean = rows.mean(1)
    return mean, ((rows - mean[:, None]) ** 2).sum(1) / (rows.shape[1] - correction)


def normalised(x: Any, mean: Any, variance: Any, p: dict[str, Any], eps: float = 1e-5) -> npt.NDArray[Any]:
    def wide(values: Any) -> Any:
        return values.reshape(3, *(1,) * (x.ndim - 2))

    y: npt.NDArray[Any] = (x - wide(mean)) / np.sqrt(wide(variance) + eps) * wide(p["weight"]) + wide(p["bias"])
    return y


PARAMS = {"weight": np.array([1.5, -0.5, 2.0]), "bias": np.array([0.1, 0.2, -0.3])}
STATE = {"running_mean": np.array([1.0, -1.0, 0.5]), "running_var": np.array([2.0, 0.25, 1.0])}


@pytest.mark.parametrize("shape", SHAPES)
def test_training_normalises_by_the_batch(run_with: Any, shape: tuple[int, ...]) -> None:
    x = batch(shape)
    y, _ = run_with(LAYER, PARAMS, x, state=STATE)
    assert y == pytest.approx(normalised(x, *statistics(x, 0), PARAMS), rel=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("momentum", [0.1, 0.0, 1.0, 0.75])
def test_running_statistics_follow_as_in_pytorch(run_with: Any, shape: tuple[int, ...], momentum: float) -> None:
    """``(1 - momentum) * running + momentum * batch``, with the unbiased variance: torch.nn.BatchNorm2d's page."""
    state = STATE
    for seed in range(3):
        x = batch(shape, seed)
        _, after = run_with(nn.BatchNorm(3, momentum=momentum), PARAMS, x, state=state)
        for (name, old), new in zip(state.items(), statistics(x, 1), strict=True):
            assert after[name] == pytest.approx((1 - momentum) * old + momentum * new, rel=1e-13)
        state = after


@pytest.mark.parametrize("shape", SHAPES)
def test_evaluation_normalises_by_the_running_statistics_and_changes_nothing(
    run_with: Any, shape: tuple[int, ...]
) -> None:
    x = batch(shape)
    y, after = run_with(LAYER, PARAMS, x, training=False, state=STATE)
    assert y == pytest.approx(normalised(x, STATE["running_mean"], STATE["running_var"], PARAMS), rel=1e-10)
    assert {name: value.tobytes() for name, value in after.items()} == {n: v.tobytes() for n, v in STATE.items()}


def test_eps_counts_in_both(run_with: Any) -> None:
    x, layer = batch((4, 3)), nn.BatchNorm(3, eps=0.5)
    for training, mean_and_variance in ((True, statistics(x, 0)), (False, tuple(STATE.values()))):
        y, _ = run_with(layer, PARAMS, x, training=training, state=STATE)
        assert y == pytest.approx(normalised(x, *mean_and_variance, PARAMS, 0.5), rel=1e-10)


def test_without_parameters(run_with: Any) -> None:
    x, plain = batch((4, 3)), {"weight": np.ones(3), "bias": np.zeros(3)}
    y, _ = run_with(nn.BatchNorm(3, affine=False), {}, x, state=STATE)
    assert y == pytest.approx(normalised(x, *statistics(x, 0), plain), rel=1e-10)


def test_without_running_statistics_it_is_the_batch_always(run: Any, run_with: Any) -> None:
    x, layer = batch((4, 3)), nn.BatchNorm(3, track_running_stats=False)
    assert layer.init_state() == {}
    expected = pytest.approx(normalised(x, *statistics(x, 0), PARAMS), rel=1e-10)
    assert run(layer, PARAMS, x) == expected
    for training in (True, False):
        y, after = run_with(layer, PARAMS, x, training=training)
        assert y == expected
        assert after == {}


def test_state_starts_as_a_standard_distribution() -> None:
    state = LAYER.init_state(np.float64)
    assert {name: x.tolist() for name, x in state.items()} == {"running_mean": [0.0] * 3, "running_var": [1.0] * 3}
    assert {name: x.tolist() for name, x in LAYER.init(0).items()} == {"weight": [1.0] * 3, "bias": [0.0] * 3}


def test_parts_of_a_model_have_their_own_state(run_with: Any) -> None:
    model = nn.Sequential(nn.BatchNorm(3), nn.Residual(nn.Sequential(nn.ReLU(), nn.BatchNorm(3, momentum=1.0))))
    names = [f"{part}.{name}" for part in ("0", "1.layer.1") for name in ("running_mean", "running_var")]
    state = model.init_state(np.float64)
    assert list(state) == names
    x, p = batch((6, 3)), model.init(0, np.float64)
    _, after = run_with(model, p, x, state=state)
    assert after["0.running_mean"] == pytest.approx(0.1 * statistics(x, 1)[0])
    hidden = np.maximum(normalised(x, *statistics(x, 0), {"weight": np.ones(3), "bias": np.zeros(3)}), 0)
    assert after["1.layer.1.running_mean"] == pytest.approx(statistics(hidden, 1)[0])
    assert after["1.layer.1.running_var"] == pytest.approx(statistics(hidden, 1)[1])


def test_gradients_go_through_the_statistics_of_the_batch() -> None:
    def function(x: Any, weight: Any, bias: Any) -> Any:
        state = {name: x.tape.const(value) for name, value in STATE.items()}
        return LAYER({"weight": weight, "bias": bias}, x, Context(training=True, state=state))

    assert gradcheck(function, batch((4, 3)), *PARAMS.values()).ok


def test_a_batch_without_a_variance_is_refused_in_training(run_with: Any) -> None:
    for shape in ((1, 3), (1, 3, 1, 1), (0, 3)):
        with pytest.raises(ShapeError) as caught:
            run_with(LAYER, PARAMS, np.zeros(shape), state=STATE)
        assert str(caught.value) == (
            f"{LAYER!r}: argument 'x': expected at least 2 elements of each channel in training, got shape {shape}"
        )
    assert run_with(LAYER, PARAMS, np.zeros((1, 3)), training=False, state=STATE)[0].shape == (1, 3)


def test_a_context_is_needed(run: Any) -> None:
    with pytest.raises(DomainError, match=rf"^{re.escape(repr(LAYER))}: argument 'ctx': expected a Context, got None"):
        run(LAYER, PARAMS, batch((4, 3)))


@pytest.mark.parametrize("training", [True, False])
def test_state_is_needed(run_with: Any, training: bool) -> None:
    with pytest.raises(DomainError, match="state: expected an entry 'running_mean', got none; make them with"):
        run_with(LAYER, PARAMS, batch((4, 3)), training=training)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("track", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(("channels", "shape"), [(3, (4, 5)), (3, (4, 1)), (1, (4, 5)), (2, (4,)), (2, ())])
def test_wrong_channels_name_the_layer(
    run_with: Any, channels: int, shape: tuple[int, ...], affine: bool, track: bool, training: bool
) -> None:
    layer = nn.BatchNorm(channels, affine=affine, track_running_stats=track)
    p, state = layer.init(0, np.float64), layer.init_state(np.float64)
    with pytest.raises(ShapeError) as caught:
        run_with(layer, p, np.ones(shape), training=training, state=state)
    assert str(caught.value) == f"{layer!r}: argument 'x': expected shape (N, {channels}, *S), got {shape}"


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(1, 3), (1, 3, 1, 1), (0, 3)])
def test_without_running_statistics_the_batch_always_needs_a_variance(
    run_with: Any, shape: tuple[int, ...], training: bool
) -> None:
    layer = nn.BatchNorm(3, affine=False, track_running_stats=False)
    with pytest.raises(ShapeError) as caught:
        run_with(layer, {}, np.zeros(shape), training=training)
    assert str(caught.value) == (
        f"{layer!r}: argument 'x': expected at least 2 elements of each channel, got shape {shape}"
    )
