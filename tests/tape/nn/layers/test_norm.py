"""The norms that need no state: what they compute and how they start."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import ShapeError, nn

from_seed = np.random.default_rng(0)
X = from_seed.standard_normal((2, 6, 3, 4)) * 3 + 1
WEIGHT, BIAS = from_seed.standard_normal(6), from_seed.standard_normal(6)


def normalised(x: npt.NDArray[Any], axes: tuple[int, ...], eps: float) -> npt.NDArray[Any]:
    mean = x.mean(axes, keepdims=True)
    normal: npt.NDArray[Any] = (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)
    return normal


def by_channel(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values[:, None, None]


@pytest.mark.parametrize("eps", [1e-5, 0.5])
@pytest.mark.parametrize("affine", [False, True])
def test_what_norms_compute(run: Any, affine: bool, eps: float) -> None:
    p = {"weight": WEIGHT, "bias": BIAS} if affine else {}
    w, b = (WEIGHT, BIAS) if affine else (np.ones(6), np.zeros(6))
    last = X.swapaxes(1, 3)
    assert run(nn.LayerNorm(6, eps, affine=affine), p, last) == pytest.approx(
        normalised(last, (3,), eps) * w + b, rel=1e-10
    )

    root_mean_square = np.sqrt((last**2).mean(3, keepdims=True) + eps)
    p_rms = {"weight": WEIGHT} if affine else {}
    assert run(nn.RMSNorm(6, eps, affine=affine), p_rms, last) == pytest.approx(last / root_mean_square * w, rel=1e-10)

    groups = normalised(X.reshape(2, 3, 2, 3, 4), (2, 3, 4), eps).reshape(X.shape)
    assert run(nn.GroupNorm(3, 6, eps, affine=affine), p, X) == pytest.approx(
        groups * by_channel(w) + by_channel(b), rel=1e-10
    )

    instances = normalised(X, (2, 3), eps)
    assert run(nn.InstanceNorm(6, eps, affine=affine), p, X) == pytest.approx(
        instances * by_channel(w) + by_channel(b), rel=1e-10
    )


@pytest.mark.parametrize("layer", [nn.LayerNorm(6), nn.GroupNorm(2, 6), nn.InstanceNorm(6, affine=True)])
def test_norms_start_as_one_and_zero(layer: nn.Layer) -> None:
    assert {name: x.tolist() for name, x in layer.init(3).items()} == {"weight": [1.0] * 6, "bias": [0.0] * 6}


def test_names_of_what_norms_need() -> None:
    assert {name: x.tolist() for name, x in nn.RMSNorm(6).init(3).items()} == {"weight": [1.0] * 6}
    bare: list[nn.Layer] = [
        nn.LayerNorm(6, affine=False),
        nn.RMSNorm(6, affine=False),
        nn.GroupNorm(2, 6, affine=False),
        nn.InstanceNorm(6),
    ]
    assert [layer.init(3) for layer in bare] == [{}] * 4


BARE = {"affine": False}


@pytest.mark.parametrize("options", [{}, BARE])
@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (lambda o: nn.LayerNorm(3, **o), (2, 5), "(…, size) with size 3"),
        (lambda o: nn.RMSNorm(3, **o), (2, 5), "(…, size) with size 3"),
        (lambda o: nn.RMSNorm(3, **o), (), "(…, size) with size 3"),
        (lambda o: nn.GroupNorm(2, 4, **o), (2, 6, 3), "(B, channels, …) with channels 4"),
        (lambda o: nn.InstanceNorm(3, **o), (2, 5, 7), "(B, channels, …) with channels 3"),
        (lambda o: nn.BatchNorm(3, track_running_stats=False, **o), (2, 5), "(B, channels, …) with channels 3"),
        (lambda o: nn.BatchNorm(3, track_running_stats=False, **o), (3,), "(B, channels, …) with channels 3"),
    ],
)
def test_a_wrong_size_is_refused_with_parameters_and_without(
    run: Any, make: Any, shape: tuple[int, ...], expected: str, options: dict[str, bool]
) -> None:
    layer = make(options)
    with pytest.raises(ShapeError) as caught:
        run(layer, layer.init(0, np.float64), np.ones(shape))
    assert str(caught.value) == f"{layer!r}: argument 'x': expected shape {expected}, got {shape}"


def test_an_instance_norm_takes_one_sample(run: Any) -> None:
    x = np.random.default_rng(0).standard_normal((3, 15))
    layer = nn.InstanceNorm(3)
    np.testing.assert_array_equal(run(layer, {}, x), run(layer, {}, x[None])[0])


def test_an_instance_norm_needs_two_elements(run: Any) -> None:
    layer = nn.InstanceNorm(3)
    with pytest.raises(ShapeError, match=r"expected at least 2 elements of each channel, got shape \(2, 3, 1\)$"):
        run(layer, {}, np.ones((2, 3, 1)))
