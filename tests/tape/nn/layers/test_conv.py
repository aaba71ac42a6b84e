"""Convolutions as layers: what they compute, how they start, what they refuse."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import DomainError, ShapeError, gradcheck, nn
from dgrr.tape.nn import init

Array = npt.NDArray[Any]
rng = np.random.default_rng(0)
X = rng.standard_normal((2, 4, 7, 8))


def parameters(layer: nn.Layer) -> dict[str, Array]:
    return layer.init(1, np.float64)


def convolved(x: Array, p: dict[str, Array], stride: Any, borders: Any, dilation: Any, groups: int) -> Array:
    """The definition, output by output: torch.nn.Conv2d's page. ``borders`` are (before, behind) of each axis."""
    weight, padded = p["weight"], np.pad(x, ((0, 0), (0, 0), *borders))
    kernel = weight.shape[2:]
    sizes = [
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(padded.shape[2:], dilation, kernel, stride, strict=True)
    ]
    out = np.zeros((len(x), len(weight), *sizes))
    width = len(weight) // groups
    for channel, *at in product(range(len(weight)), *map(range, sizes)):
        inputs = slice(channel // width * weight.shape[1], (channel // width + 1) * weight.shape[1])
        cells = tuple(slice(i * s, i * s + d * k, d) for i, s, d, k in zip(at, stride, dilation, kernel, strict=True))
        out[(slice(None), channel, *at)] = (padded[(slice(None), inputs, *cells)] * weight[channel]).sum(
            tuple(range(1, x.ndim))
        )
    bias = p.get("bias", np.zeros(len(weight)))
    return out + bias.reshape(-1, *(1,) * len(sizes))


def spread(x: Array, p: dict[str, Array], stride: Any, padding: Any, more: Any, dilation: Any, groups: int) -> Array:
    """The transpose, input by input: each is added, times the kernel, where a convolution would have read it."""
    weight = p["weight"]
    kernel, width = weight.shape[2:], weight.shape[1]
    full = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(x.shape[2:], stride, dilation, kernel, strict=True)]
    out = np.zeros((len(x), width * groups, *(f + m for f, m in zip(full, more, strict=True))))
    for channel, *at in product(range(x.shape[1]), *map(range, x.shape[2:])):
        group = channel // (x.shape[1] // groups)
        cells = tuple(slice(i * s, i * s + d * k, d) for i, s, d, k in zip(at, stride, dilation, kernel, strict=True))
        value = x[(slice(None), channel, *at)].reshape(-1, *(1,) * (1 + len(kernel)))
        out[(slice(None), slice(group * width, (group + 1) * width), *cells)] += value * weight[channel]
    cut = tuple(slice(pad, n - pad) for pad, n in zip(padding, out.shape[2:], strict=True))
    bias = p.get("bias", np.zeros(width * groups))
    return out[(slice(None), slice(None), *cut)] + bias.reshape(-1, *(1,) * len(kernel))


NONE = ((0, 0), (0, 0))


@pytest.mark.parametrize(
    ("layer", "stride", "borders", "dilation"),
    [
        (nn.Conv2d(4, 6, 3), (1, 1), NONE, (1, 1)),
        (nn.Conv(4, 6, (3, 2), bias=False), (1, 1), NONE, (1, 1)),
        (nn.Conv2d(4, 6, 3, stride=2, padding=1), (2, 2), ((1, 1), (1, 1)), (1, 1)),
        (nn.Conv2d(4, 6, (3, 2), (2, 1), (0, 2), (1, 3), groups=2), (2, 1), ((0, 0), (2, 2)), (1, 3)),
        (nn.Conv2d(4, 4, 3, groups=4, padding="valid"), (1, 1), NONE, (1, 1)),
        (nn.Conv2d(4, 2, 3, padding="same"), (1, 1), ((1, 1), (1, 1)), (1, 1)),
        (nn.Conv2d(4, 2, (4, 2), padding="same"), (1, 1), ((1, 2), (0, 1)), (1, 1)),
        (nn.Conv2d(4, 2, (3, 2), padding="same", dilation=(2, 3)), (1, 1), ((2, 2), (1, 2)), (2, 3)),
    ],
)
def test_what_convolutions_compute(run: Any, layer: nn.Conv, stride: Any, borders: Any, dilation: Any) -> None:
    p = parameters(layer)
    y = run(layer, p, X)
    assert y == pytest.approx(convolved(X, p, stride, borders, dilation, layer.groups), rel=1e-10, abs=1e-12)
    if layer.padding == "same":
        assert y.shape[2:] == X.shape[2:]


@pytest.mark.parametrize(
    ("layer", "stride", "padding", "more", "dilation"),
    [
        (nn.ConvTranspose2d(4, 6, 3), (1, 1), (0, 0), (0, 0), (1, 1)),
        (nn.ConvTranspose(4, 6, (3, 2), 2, bias=False), (2, 2), (0, 0), (0, 0), (1, 1)),
        (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), (2, 2), (1, 1), (1, 1), (1, 1)),
        (nn.ConvTranspose2d(4, 6, (2, 3), (3, 1), (0, 1), (2, 0), 2, dilation=(1, 2)), (3, 1), (0, 1), (2, 0), (1, 2)),
    ],
)
def test_what_transposed_convolutions_compute(
    run: Any, layer: nn.ConvTranspose, stride: Any, padding: Any, more: Any, dilation: Any
) -> None:
    p = parameters(layer)
    expected = spread(X, p, stride, padding, more, dilation, layer.groups)
    assert run(layer, p, X) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_one_axis_and_three(run: Any) -> None:
    line, p = nn.Conv1d(4, 3, 5, padding="same"), parameters(nn.Conv1d(4, 3, 5))
    assert run(line, p, X[:, :, 0]) == pytest.approx(
        convolved(X[:, :, 0], p, (1,), ((2, 2),), (1,), 1), rel=1e-10, abs=1e-12
    )
    up, p = nn.ConvTranspose1d(4, 3, 5, 2), parameters(nn.ConvTranspose1d(4, 3, 5, 2))
    assert run(up, p, X[:, :, 0]) == pytest.approx(
        spread(X[:, :, 0], p, (2,), (0,), (0,), (1,), 1), rel=1e-10, abs=1e-12
    )
    solid, x = nn.Conv(4, 2, (2, 1, 3)), rng.standard_normal((1, 4, 3, 2, 5))
    p = parameters(solid)
    assert run(solid, p, x) == pytest.approx(
        convolved(x, p, (1, 1, 1), ((0, 0),) * 3, (1, 1, 1), 1), rel=1e-10, abs=1e-12
    )


@pytest.mark.parametrize("layer", [nn.Conv2d(4, 6, (4, 3), padding="same"), nn.ConvTranspose2d(4, 6, 3, 2)])
def test_samples_are_independent(run: Any, layer: nn.Layer) -> None:
    p = parameters(layer)
    batch = run(layer, p, X)
    assert run(layer, p, X[1:]).tobytes() == batch[1:].tobytes()
    assert run(layer, p, X[0]).tobytes() == batch[0].tobytes()
    stacked = run(layer, p, X.reshape(1, *X.shape))
    assert stacked.shape == (1, *batch.shape)
    assert stacked.tobytes() == batch.tobytes()


def test_an_int_counts_for_every_axis(run: Any) -> None:
    p = parameters(nn.Conv2d(4, 6, 3))
    whole = run(nn.Conv(4, 6, (3, 3), (2, 2), (1, 1), (1, 1)), p, X)
    assert run(nn.Conv2d(4, 6, 3, 2, 1, 1), p, X).tobytes() == whole.tobytes()


@pytest.mark.parametrize(
    ("layer", "shape", "fan_in"),
    [
        (nn.Conv2d(8, 16, (3, 5)), (16, 8, 3, 5), 8 * 15),
        (nn.Conv2d(8, 16, 5, groups=4), (16, 2, 5, 5), 2 * 25),
        (nn.ConvTranspose2d(8, 16, (3, 5)), (8, 16, 3, 5), 16 * 15),
        (nn.ConvTranspose2d(8, 16, 5, groups=4), (8, 4, 5, 5), 4 * 25),
    ],
)
def test_weight_and_bias_start_as_in_pytorch(layer: nn.Layer, shape: tuple[int, ...], fan_in: int) -> None:
    """Uniform within ``1 / sqrt(fan_in)``, where PyTorch takes the second axis of either weight for the inputs."""
    p = layer.init(4)
    assert [(name, x.shape) for name, x in p.items()] == [("weight", shape), ("bias", (16,))]
    start = init.uniform_fan_in(fan_in)
    for ordinal, x in enumerate(p.values()):
        assert x.tobytes() == start(x.shape, np.dtype(np.float32), 4, ordinal).tobytes()
    assert 0.98 * fan_in**-0.5 < abs(p["weight"]).max() <= fan_in**-0.5
    assert list(nn.Conv2d(8, 16, 5, bias=False).init(4)) == ["weight"]


def test_gradients() -> None:
    for layer in (nn.Conv2d(2, 3, (2, 3), padding="same"), nn.ConvTranspose2d(2, 3, 2, 2)):
        p = parameters(layer)
        check = gradcheck(
            lambda x, *values, layer=layer, p=p: layer(dict(zip(p, values, strict=True)), x),
            X[:1, :2, :3, :3],
            *p.values(),
        )
        assert check.ok, str(check)


def test_what_is_missing_or_does_not_fit(run: Any) -> None:
    layer = nn.Conv2d(3, 6, 3)
    with pytest.raises(ShapeError, match="^conv: argument"):
        run(layer, parameters(layer), X)
    with pytest.raises(ShapeError, match="^conv_transpose: argument"):
        run(nn.ConvTranspose2d(3, 6, 3), parameters(nn.ConvTranspose2d(3, 6, 3)), X)
    with pytest.raises(DomainError, match=r"^Conv2d\(.*\): argument 'p': expected a parameter 'bias', got 'weight'$"):
        run(layer, {"weight": parameters(layer)["weight"]}, X)


@pytest.mark.parametrize(("mode", "numpys"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_what_stands_in_the_padding(run: Any, mode: Any, numpys: Any) -> None:
    same = nn.Conv2d(4, 2, (4, 3), padding="same", padding_mode=mode)
    p = parameters(same)
    wide = np.pad(X, ((0, 0), (0, 0), (1, 2), (1, 1)), numpys)
    assert run(same, p, X).tobytes() == run(nn.Conv2d(4, 2, (4, 3)), p, wide).tobytes()
    uneven = nn.Conv2d(4, 2, (4, 3), 2, ((1, 2), (1, 1)), padding_mode=mode)
    assert run(uneven, p, X).tobytes() == run(nn.Conv2d(4, 2, (4, 3), 2), p, wide).tobytes()


def test_padding_before_and_behind(run: Any) -> None:
    layer = nn.Conv2d(4, 2, 3, padding=((2, 0), (0, 1)))
    p, wide = parameters(layer), np.pad(X, ((0, 0), (0, 0), (2, 0), (0, 1)))
    assert run(layer, p, X).tobytes() == run(nn.Conv2d(4, 2, 3), p, wide).tobytes()
