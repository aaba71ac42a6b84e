"""Layers as descriptions: equality, printing, what they ask for, and the sizes that they refuse."""

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from inspect import isabstract
from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, nn

from .made import MAKERS


def test_every_layer_is_among_them() -> None:
    named = {getattr(nn, name) for name in nn.__all__}
    layers = {x for x in named if isinstance(x, type) and issubclass(x, nn.Layer) and not isabstract(x)}
    assert {layer.__name__ for layer in layers} == {type(make()).__name__ for make in MAKERS}


def test_layers_are_equal_if_they_are_described_alike() -> None:
    ones, others = [make() for make in MAKERS], [make() for make in MAKERS]
    assert [[a == b for b in others] for a in ones] == [[i == j for j in range(len(ones))] for i in range(len(ones))]
    assert [hash(layer) for layer in ones] == [hash(layer) for layer in others]


@pytest.mark.parametrize("make", MAKERS)
def test_a_layer_prints_as_what_makes_it(make: Callable[[], nn.Layer]) -> None:
    layer = make()
    assert eval(repr(layer), vars(nn)) == layer


@pytest.mark.parametrize("make", MAKERS)
def test_layers_are_frozen(make: Callable[[], nn.Layer]) -> None:
    layer = make()
    for field in fields(layer):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(layer, field.name, 3)
    assert layer == make()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_and_state_have_the_shapes_that_are_announced(make: Callable[[], nn.Layer], dtype: Any) -> None:
    layer = make()
    for made, announced in (
        (layer.init(0, dtype), layer.parameters()),
        (layer.init_state(dtype), layer.states()),
    ):
        assert {n: (x.shape, x.dtype) for n, x in made.items()} == {
            n: (p.shape, np.dtype(dtype)) for n, p in announced.items()
        }
    assert not set(layer.parameters()) & set(layer.states())


def test_printing_a_model_with_parts() -> None:
    model = nn.Sequential(nn.Residual(nn.Sequential(nn.Conv2d(2, 2, 3, padding="same"), nn.BatchNorm(2))), nn.Flatten())
    assert [(row["layer"], row["parameters"], row["count"]) for row in model.table()] == [
        ("0.layer.0", "weight (2, 2, 3, 3), bias (2,)", 38),
        ("0.layer.1", "weight (2,), bias (2,)", 4),
        ("1", "-", 0),
        ("", "total", 42),
    ]
    assert "BatchNorm(channels=2, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, bias=True)" in str(
        model
    )


REFUSED: list[tuple[Callable[[], nn.Layer], str]] = [
    (lambda: nn.Conv(0, 1, (1,)), "Conv: argument 'in_channels': expected an int of at least 1, got 0"),
    (lambda: nn.Conv(1, 2.0, (1,)), "Conv: argument 'out_channels': expected a whole number, got 2.0"),  # type: ignore[arg-type]
    (lambda: nn.Conv(1, 1, (1,), groups=0), "Conv: argument 'groups': expected an int of at least 1, got 0"),
    (lambda: nn.Conv(3, 4, (1,), groups=2), "Conv: argument 'in_channels': expected a multiple of groups 2, got 3"),
    (lambda: nn.Conv(4, 3, (1,), groups=2), "Conv: argument 'out_channels': expected a multiple of groups 2, got 3"),
    (
        lambda: nn.Conv(1, 1, 3),
        "Conv: argument 'kernel_size': expected a tuple of ints of at least 1, one for each axis, got 3",
    ),
    (
        lambda: nn.Conv(1, 1, ()),
        "Conv: argument 'kernel_size': expected a tuple of ints of at least 1, one for each axis, got ()",
    ),
    (
        lambda: nn.Conv2d(1, 1, (3, 3, 3)),
        "Conv2d: argument 'kernel_size': expected an int or a tuple of ints of at least 1, 2 of them, got (3, 3, 3)",
    ),
    (
        lambda: nn.Conv1d(1, 1, 0),
        "Conv1d: argument 'kernel_size': expected an int or a tuple of ints of at least 1, 1 of them, got 0",
    ),
    (
        lambda: nn.Conv(1, 1, (3, 3), stride=(1, 0)),
        "Conv: argument 'stride': expected an int or a tuple of ints of at least 1, 2 of them, got (1, 0)",
    ),
    (
        lambda: nn.Conv2d(1, 1, 3, padding=-1),
        "Conv2d: argument 'padding': expected an int or a tuple of ints of at least 0, 2 of them, or (before, behind) "
        "for each, got -1",
    ),
    (
        lambda: nn.Conv2d(1, 1, 3, padding="full"),
        "Conv2d: argument 'padding': expected 'same', 'valid' or sizes, got 'full'",
    ),  # type: ignore[arg-type]
    (
        lambda: nn.Conv2d(1, 1, 3, 2, "same"),
        "Conv2d: argument 'stride': expected 1 with padding='same', got 2",
    ),
    (
        lambda: nn.Conv2d(1, 1, 3, dilation=0),
        "Conv2d: argument 'dilation': expected an int or a tuple of ints of at least 1, 2 of them, got 0",
    ),
    (
        lambda: nn.ConvTranspose(2, 0, (1,)),
        "ConvTranspose: argument 'out_channels': expected an int of at least 1, got 0",
    ),
    (
        lambda: nn.ConvTranspose(2, 3, (1,), groups=2),
        "ConvTranspose: argument 'out_channels': expected a multiple of groups 2, got 3",
    ),
    *(
        (
            lambda argument=argument, least=least: nn.ConvTranspose2d(1, 1, 3, **{argument: least - 1}),  # type: ignore[misc]
            f"ConvTranspose2d: argument {argument!r}: expected an int or a tuple of ints of at least {least}, "
            f"2 of them, got {least - 1}",
        )
        for argument, least in (("stride", 1), ("output_padding", 0), ("dilation", 1))
    ),
    (
        lambda: nn.ConvTranspose2d(1, 1, 3, padding=((0, -1), (0, 0))),
        "ConvTranspose2d: argument 'padding': expected an int or a tuple of ints of at least 0, 2 of them, or (before, "
        "behind) for each, got ((0, -1), (0, 0))",
    ),
    (
        lambda: nn.MaxPool(2),
        "MaxPool: argument 'kernel_size': expected a tuple of ints of at least 1, one for each axis, got 2",
    ),
    (
        lambda: nn.MaxPool2d(2, 0),
        "MaxPool2d: argument 'stride': expected an int or a tuple of ints of at least 1, 2 of them, got 0",
    ),
    (
        lambda: nn.AvgPool2d(2, padding=(1,)),
        "AvgPool2d: argument 'padding': expected an int or a tuple of ints of at least 0, 2 of them, or (before, "
        "behind) for each, got (1,)",
    ),
    (
        lambda: nn.MaxPool2d(2, dilation=0),
        "MaxPool2d: argument 'dilation': expected an int or a tuple of ints of at least 1, 2 of them, got 0",
    ),
    *(
        (
            lambda beta=beta: nn.SmoothMaxPool((2,), beta=beta),  # type: ignore[misc]
            f"SmoothMaxPool: argument 'beta': expected a finite number other than 0, got {beta}",
        )
        for beta in (0.0, math.inf, math.nan)
    ),
    (
        lambda: nn.SmoothMaxPool((2,), padding=-1),
        "SmoothMaxPool: argument 'padding': expected an int or a tuple of ints of at least 0, 1 of them, or (before, "
        "behind) for each, got -1",
    ),
    (
        lambda: nn.AdaptiveAvgPool(3),
        "AdaptiveAvgPool: argument 'output_size': expected a tuple of ints of at least 1, one for each axis, got 3",
    ),
    (
        lambda: nn.AdaptiveMaxPool2d(0),
        "AdaptiveMaxPool2d: argument 'output_size': expected an int or a tuple of ints of at least 1, 2 of them, got 0",
    ),
    (
        nn.UpsampleNearest,
        "UpsampleNearest: arguments 'scale_factor' and 'size': expected one of the two, got None and None",
    ),
    (
        lambda: nn.UpsampleNearest((2,), (3,)),
        "UpsampleNearest: arguments 'scale_factor' and 'size': expected one of the two, got (2,) and (3,)",
    ),
    (
        lambda: nn.UpsampleNearest((2, 0)),
        "UpsampleNearest: argument 'scale_factor': expected a tuple of ints of at least 1, one for each axis, "
        "got (2, 0)",
    ),
    (
        lambda: nn.UpsampleNearest(size=3),  # type: ignore[arg-type]
        "UpsampleNearest: argument 'size': expected a tuple of whole numbers or None, got 3",
    ),
    (
        lambda: nn.UpsampleBilinear((3, 3, 3)),  # type: ignore[arg-type]
        "UpsampleBilinear: argument 'size': expected a tuple of two ints, got (3, 3, 3)",
    ),
    (
        lambda: nn.UpsampleBilinear((3, 0)),
        "UpsampleBilinear: argument 'size': expected a tuple of ints of at least 1, one for each axis, got (3, 0)",
    ),
    (nn.Upsample, "Upsample: arguments 'size' and 'scale_factor': expected one of the two, got None and None"),
    (
        lambda: nn.Upsample((2, 0)),
        "Upsample: argument 'size': expected a tuple of ints of at least 1, one for each axis, got (2, 0)",
    ),
    *(
        (
            lambda given=given: nn.Upsample(scale_factor=given),
            "Upsample: argument 'scale_factor': expected a tuple of finite numbers above 0, one for each axis, "
            f"got {given}",
        )
        for given in ((), (2.0, 0.0), (math.inf,))
    ),
    (
        lambda: nn.Conv2d(1, 1, 3, padding_mode="edge"),  # type: ignore[arg-type]
        "Conv2d: argument 'padding_mode': expected one of zeros, reflect, replicate, circular, got 'edge'",
    ),
    (lambda: nn.LPPool(0, (2,)), "LPPool: argument 'norm_type': expected a number above 0 and at most 2**20, got 0"),
    (
        lambda: nn.Pad(((1, 2, 3),)),  # type: ignore[arg-type]
        "Pad: argument 'widths': expected a tuple of pairs (before, behind), got ((1, 2, 3),)",
    ),
    (lambda: nn.PixelShuffle(0), "PixelShuffle: argument 'upscale_factor': expected an int of at least 1, got 0"),
    (
        lambda: nn.PixelUnshuffle(0),
        "PixelUnshuffle: argument 'downscale_factor': expected an int of at least 1, got 0",
    ),
    (lambda: nn.LayerNorm(0), "LayerNorm: argument 'size': expected an int of at least 1, got 0"),
    (lambda: nn.LayerNorm((3,)), "LayerNorm: argument 'size': expected a whole number, got (3,)"),  # type: ignore[arg-type]
    (lambda: nn.RMSNorm(0), "RMSNorm: argument 'size': expected an int of at least 1, got 0"),
    (lambda: nn.GroupNorm(0, 4), "GroupNorm: argument 'num_groups': expected an int of at least 1, got 0"),
    (lambda: nn.GroupNorm(2, 5), "GroupNorm: argument 'channels': expected a multiple of num_groups 2, got 5"),
    (lambda: nn.InstanceNorm(0), "InstanceNorm: argument 'channels': expected an int of at least 1, got 0"),
    (lambda: nn.BatchNorm(0), "BatchNorm: argument 'channels': expected an int of at least 1, got 0"),
    *(
        (
            lambda momentum=momentum: nn.BatchNorm(2, momentum=momentum),  # type: ignore[misc]
            f"BatchNorm: argument 'momentum': expected a number from 0 to 1 or None, got {momentum}",
        )
        for momentum in (-0.1, 1.5, math.nan)
    ),
    *(
        (
            lambda make=make, eps=eps: make(eps),  # type: ignore[misc]
            f"{make(0.0).__class__.__name__}: argument 'eps': expected a finite number of at least 0, got {eps}",
        )
        for make in (
            lambda eps: nn.LayerNorm(2, eps),
            lambda eps: nn.RMSNorm(2, eps),
            lambda eps: nn.GroupNorm(1, 2, eps),
            lambda eps: nn.InstanceNorm(2, eps),
            lambda eps: nn.BatchNorm(2, eps),
        )
        for eps in (-1e-5, math.inf, math.nan)
    ),
    (
        lambda: nn.MultiHeadAttention(0, 1),
        "MultiHeadAttention: argument 'embed_dim': expected an int of at least 1, got 0",
    ),
    (
        lambda: nn.MultiHeadAttention(8, 3),
        "MultiHeadAttention: argument 'embed_dim': expected a multiple of num_heads 3, got 8",
    ),
    (
        lambda: nn.MultiHeadAttention(8, 2, dropout=-0.1),
        "MultiHeadAttention: argument 'dropout': expected a probability from 0 to 1, got -0.1",
    ),
    (
        lambda: nn.TransformerBlock(8, 2, 0),
        "TransformerBlock: argument 'hidden': expected an int of at least 1, got 0",
    ),
    (
        lambda: nn.TransformerBlock(8, 3, 4),
        "MultiHeadAttention: argument 'embed_dim': expected a multiple of num_heads 3, got 8",
    ),
    (lambda: nn.Embedding(0, 1), "Embedding: argument 'count': expected an int of at least 1, got 0"),
    (lambda: nn.Embedding(1, 0), "Embedding: argument 'size': expected an int of at least 1, got 0"),
    *(
        (
            lambda p=p: nn.Dropout(p),  # type: ignore[misc]
            f"Dropout: argument 'p': expected a probability from 0 to 1, got {p}",
        )
        for p in (-0.5, 1.5, math.nan)
    ),
]


@pytest.mark.parametrize(("make", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_sizes_that_layers_refuse(make: Callable[[], nn.Layer], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make()
    assert str(caught.value) == text
