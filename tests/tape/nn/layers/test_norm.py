"""The norms that need no state: what they compute and how they start."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import ShapeError, Tape, TapeError, nn

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


BY_FEATURE = [
    make(size, affine=affine) for make in (nn.LayerNorm, nn.RMSNorm) for affine in (True, False) for size in (3, 1)
]
BY_CHANNEL = [
    make(affine)
    for make in (lambda affine: nn.GroupNorm(2, 4, affine=affine), lambda affine: nn.InstanceNorm(4, affine=affine))
    for affine in (True, False)
]


def refused(run: Any, layer: nn.Layer, shape: tuple[int, ...]) -> str:
    with pytest.raises(ShapeError) as caught:
        run(layer, layer.init(0, np.float64), np.ones(shape))
    return str(caught.value)


@pytest.mark.parametrize("layer", BY_FEATURE, ids=repr)
@pytest.mark.parametrize("shape", [(2, 5), (5,), (3, 2), (3, 0), ()])
def test_a_wrong_number_of_features_is_refused(run: Any, layer: Any, shape: tuple[int, ...]) -> None:
    assert refused(run, layer, shape) == f"{layer!r}: argument 'x': expected shape (*Bs, {layer.size}), got {shape}"


@pytest.mark.parametrize("layer", BY_CHANNEL, ids=repr)
@pytest.mark.parametrize("shape", [(2, 6, 3), (2, 1, 3), (2, 3, 4), (0, 2, 3), (3,), ()])
def test_a_wrong_number_of_channels_is_refused(run: Any, layer: Any, shape: tuple[int, ...]) -> None:
    assert refused(run, layer, shape) == f"{layer!r}: argument 'x': expected shape (N, 4, *S), got {shape}"


@pytest.mark.parametrize("layer", BY_CHANNEL, ids=repr)
@pytest.mark.parametrize("shape", [(4, 5, 7), (4,)])
def test_one_sample_without_a_batch_is_told_how(run: Any, layer: Any, shape: tuple[int, ...]) -> None:
    assert refused(run, layer, shape) == (
        f"{layer!r}: argument 'x': expected shape (N, 4, *S), got {shape}; add a batch axis to one sample with x[None]"
    )


@pytest.mark.parametrize("affine", [False, True])
def test_two_axes_are_one_sample_to_an_instance_norm(run: Any, affine: bool) -> None:
    layer, x = nn.InstanceNorm(4, affine=affine), np.random.default_rng(0).standard_normal((4, 15))
    p = layer.init(0, np.float64)
    np.testing.assert_array_equal(run(layer, p, x), run(layer, p, x[None])[0])


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(2, 4), (2, 4, 1), (2, 4, 1, 1), (2, 4, 0)])
def test_instances_of_fewer_than_two_elements_are_refused(run: Any, shape: tuple[int, ...], affine: bool) -> None:
    layer = nn.InstanceNorm(4, affine=affine)
    assert refused(run, layer, shape) == (
        f"{layer!r}: argument 'x': expected at least 2 elements of each channel in a sample, got shape {shape}"
    )


def test_parameters_of_a_wrong_size_name_the_op_and_the_argument(run: Any) -> None:
    with pytest.raises(ShapeError, match=r"^layer_norm: argument 'weight': expected shape \(4,\), got \(6,\)$"):
        run(nn.LayerNorm(4), nn.LayerNorm(6).init(0, np.float64), X)


def test_what_is_no_var_is_refused_too() -> None:
    tape: Tape[Any] = Tape()
    layer: Any = nn.LayerNorm(3)
    with pytest.raises(ShapeError, match=r"argument 'x': expected shape \(\*Bs, 3\), got \(\)$"):
        layer(tape.params(layer.init(0)), 3.0)
    bare: Any = nn.LayerNorm(3, affine=False)
    with pytest.raises(TapeError, match="^layer_norm: expected a Var among the arguments"):
        bare({}, [1.0, 2.0, 3.0])
