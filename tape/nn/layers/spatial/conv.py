"""Convolutions over any number of spatial axes."""

from dataclasses import KW_ONLY, dataclass
from math import prod
from typing import ClassVar, Literal

from .... import ops
from ....numerics.sizes import Sizes
from ....values.per_axis import PerSide
from ....var.var import AnyVar
from ...checks import Spatial, refuse, require_at_least, require_multiple
from ...context import Context
from ...initializers import uniform_fan_in
from ...layer import Params, parameter
from ...parameters import Parameter

PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""PyTorch's words for the modes of `ops.pad`."""


@dataclass(frozen=True)
class Conv(Spatial):
    """The cross-correlation of ``(…, in_channels, *spatial)`` with ``weight``, plus ``bias`` for each channel.

    The weight is (out_channels, in_channels / groups, *kernel_size). ``padding="same"`` keeps the spatial sizes, the
    larger border behind, and needs stride 1; ``"valid"`` is 0; pairs give each axis its border (before, behind). What
    stands there ``padding_mode`` says: "zeros", the outermost elements for "replicate", those mirrored at the outermost
    for "reflect", those of the other end for "circular". Weight and bias start as in PyTorch.

    Source: torch.nn.Conv1d, Conv2d and Conv3d.
    Shapes: x (*Bs, in_channels, *spatial) -> (*Bs, out_channels, *windows); sizes as in `ops.conv`
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: a size is no int in its range, ``groups`` does not divide the channels, or ``padding`` does not go
            with the stride.
        ShapeError: when called, x has other channels, too few axes, or no room for a window.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import nn
    >>> {name: value.shape for name, value in nn.Conv(3, 8, (5, 5)).init(seed=0).items()}
    {'weight': (8, 3, 5, 5), 'bias': (8,)}
    """

    in_channels: int
    out_channels: int
    kernel_size: int | Sizes
    stride: int | Sizes = 1
    padding: PerSide | Literal["same", "valid"] = 0
    dilation: int | Sizes = 1
    groups: int = 1
    _: KW_ONLY
    bias: bool = True
    padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_channels(self)
        kernel = _kernel(self)
        if self.padding_mode not in PADDING_MODES:
            raise refuse(self, "padding_mode", f"one of {', '.join(PADDING_MODES)}")
        stride = self.numbers("stride", 1, len(kernel))
        self.numbers("dilation", 1, len(kernel))
        if self.padding == "same" and stride != (1,) * len(kernel):
            raise refuse(self, "stride", "1 with padding='same'")
        if isinstance(self.padding, str) and self.padding not in ("same", "valid"):
            raise refuse(self, "padding", "'same', 'valid' or sizes")
        if not isinstance(self.padding, str):
            self.sides("padding", len(kernel))

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and, unless switched off, ``bias``."""
        return _weight_and_bias(self, (self.out_channels, self.in_channels // self.groups))

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, in_channels, *spatial) to (…, out_channels, *spatial)."""
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = self._padded(x), 0
        return ops.conv(x, *_values(self, p), self.stride, padding, self.dilation, self.groups)

    def _padded(self, x: AnyVar) -> AnyVar:
        """x between borders of its own elements, as wide as the padding."""
        sides = self._sides()
        whole = ((0, 0),) * max(len(x.shape) - len(sides), 0)
        return ops.pad(x, (*whole, *sides), mode=PADDING_MODES[self.padding_mode])

    def _sides(self) -> tuple[tuple[int, int], ...]:
        kernel = _kernel(self)
        if not isinstance(self.padding, str):
            return self.sides("padding", len(kernel))
        dilation = self.numbers("dilation", 1, len(kernel))
        reach = [d * (k - 1) if self.padding == "same" else 0 for k, d in zip(kernel, dilation, strict=True)]
        return tuple((n // 2, n - n // 2) for n in reach)


@dataclass(frozen=True)
class Conv1d(Conv):
    """`Conv` over one axis.

    Source: torch.nn.Conv1d.
    Shapes: x (*Bs, in_channels, length) -> (*Bs, out_channels, windows); sizes as in `ops.conv`
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: a size is no int in its range, ``groups`` does not divide the channels, or ``padding`` does not go
            with the stride.
        ShapeError: when called, x has other channels, too few axes, or no room for a window.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Conv1d(3, 8, 5).init(seed=0)["weight"].shape
    (8, 3, 5)
    """

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class Conv2d(Conv):
    """`Conv` over two axes.

    Source: torch.nn.Conv2d.
    Shapes: x (*Bs, in_channels, H, W) -> (*Bs, out_channels, Ho, Wo); sizes as in `ops.conv`
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: a size is no int in its range, ``groups`` does not divide the channels, or ``padding`` does not go
            with the stride.
        ShapeError: when called, x has other channels, too few axes, or no room for a window.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Conv2d(3, 8, 5).init(seed=0)["weight"].shape
    (8, 3, 5, 5)
    """

    axes: ClassVar[int | None] = 2


@dataclass(frozen=True)
class ConvTranspose(Spatial):
    """The gradient of `Conv` with respect to its input, as a layer that enlarges; plus ``bias`` for each channel.

    The weight is (in_channels, out_channels / groups, *kernel_size); weight and bias start as in PyTorch.

    Source: torch.nn.ConvTranspose1d, ConvTranspose2d and ConvTranspose3d.
    Shapes: x (*Bs, in_channels, *spatial) -> (*Bs, out_channels, *windows); sizes as in `ops.conv_transpose`
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: a size is no int in its range, or ``groups`` does not divide the channels.
        ShapeError: when called, x has other channels or too few axes, or no elements would be left of it.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ConvTranspose(3, 8, (5, 5)).init(seed=0)["weight"].shape
    (3, 8, 5, 5)
    """

    in_channels: int
    out_channels: int
    kernel_size: int | Sizes
    stride: int | Sizes = 1
    padding: PerSide = 0
    output_padding: int | Sizes = 0
    groups: int = 1
    _: KW_ONLY
    bias: bool = True
    dilation: int | Sizes = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_channels(self)
        axes = len(_kernel(self))
        self.sides("padding", axes)
        for argument, least in (("stride", 1), ("output_padding", 0), ("dilation", 1)):
            self.numbers(argument, least, axes)

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and, unless switched off, ``bias``."""
        return _weight_and_bias(self, (self.in_channels, self.out_channels // self.groups))

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, in_channels, *spatial) to (…, out_channels, *spatial)."""
        weight, bias = _values(self, p)
        return ops.conv_transpose(
            x, weight, bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )


@dataclass(frozen=True)
class ConvTranspose1d(ConvTranspose):
    """`ConvTranspose` over one axis.

    Source: torch.nn.ConvTranspose1d.
    Shapes: x (*Bs, in_channels, length) -> (*Bs, out_channels, windows); sizes as in `ops.conv_transpose`
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: a size is no int in its range, or ``groups`` does not divide the channels.
        ShapeError: when called, x has other channels or too few axes, or no elements would be left of it.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ConvTranspose1d(3, 8, 5).init(seed=0)["weight"].shape
    (3, 8, 5)
    """

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class ConvTranspose2d(ConvTranspose):
    """`ConvTranspose` over two axes.

    Source: torch.nn.ConvTranspose2d.
    Shapes: x (*Bs, in_channels, H, W) -> (*Bs, out_channels, Ho, Wo); sizes as in `ops.conv_transpose`
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: a size is no int in its range, or ``groups`` does not divide the channels.
        ShapeError: when called, x has other channels or too few axes, or no elements would be left of it.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ConvTranspose2d(3, 8, 5).init(seed=0)["weight"].shape
    (3, 8, 5, 5)
    """

    axes: ClassVar[int | None] = 2


def _kernel(layer: Conv | ConvTranspose) -> Sizes:
    return layer.numbers("kernel_size", 1, layer.axes)


def _require_channels(layer: Conv | ConvTranspose) -> None:
    require_at_least(layer, 1, "in_channels", "out_channels", "groups")
    require_multiple(layer, "in_channels", "groups")
    require_multiple(layer, "out_channels", "groups")


def _weight_and_bias(layer: Conv | ConvTranspose, channels: Sizes) -> dict[str, Parameter]:
    kernel = _kernel(layer)
    start = uniform_fan_in(channels[1] * prod(kernel))
    named = {"weight": Parameter((*channels, *kernel), start)}
    return {**named, "bias": Parameter((layer.out_channels,), start, "bias")} if layer.bias else named


def _values(layer: Conv | ConvTranspose, p: Params) -> tuple[AnyVar, AnyVar | None]:
    return parameter(p, layer, "weight"), parameter(p, layer, "bias") if layer.bias else None
