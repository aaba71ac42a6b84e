"""Convolutions over any number of spatial axes."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod
from typing import Literal

from .... import ops
from ....errors import DomainError
from ....numerics.sizes import Sizes
from ....record.kinds.values import Given, Wrong, each, one_of
from ....values.per_axis import PerSide, per_side
from ....var.var import AnyVar
from ...checks import refuse
from ...context import Context
from ...initializers import uniform_fan_in
from ...kinds import SIZE, multiple_of
from ...parameters import Parameter, weight_and_bias
from ...scope import Params, parameter
from .spatial import BORDER, KERNEL, STEPS, EachAxis, Spatial

PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""PyTorch's words for the modes of `ops.pad`."""


class BorderOrWord(EachAxis):
    """What stands around the elements, or a word that says how wide it is."""

    WORDS = "'same', 'valid' or sizes"

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise DomainError for another word, and for sizes that do not fit."""
        if not isinstance(given[argument], str):
            super().require(op, argument, given)
        elif given[argument] not in ("same", "valid"):
            raise DomainError(f"{op}: {Wrong(DomainError, self.WORDS, given[argument]).text(argument)}")

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """The sizes, and a word."""
        return [*super().wrong(given), Wrong(DomainError, self.WORDS, "full")]


PADDING = {"padding": BorderOrWord(0, "kernel_size", sides=True), "padding_mode": one_of(*PADDING_MODES)}
CHANNELS = {"in_channels": multiple_of("groups"), "out_channels": multiple_of("groups"), "groups": SIZE}
SIZES = {"kernel_size": KERNEL, "stride": STEPS, "dilation": STEPS}


class Convolution(Spatial, kinds={**CHANNELS, **SIZES}):
    """What `Conv` and `ConvTranspose` have in common: a weight and, unless switched off, a bias.

    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.
    """

    in_channels: int
    out_channels: int
    kernel_size: int | Sizes
    stride: int | Sizes
    dilation: int | Sizes
    groups: int
    bias: bool

    def _weight_and_bias(self, channels: Sizes) -> dict[str, Parameter]:
        kernel = self.sizes(self.kernel_size)
        start = uniform_fan_in(channels[1] * prod(kernel))
        return weight_and_bias((*channels, *kernel), start, self.out_channels if self.bias else 0)

    def _values(self, p: Params) -> tuple[AnyVar, AnyVar | None]:
        return parameter(p, self, "weight"), parameter(p, self, "bias") if self.bias else None


@dataclass(frozen=True)
class Conv(Convolution, kinds=PADDING):
    """The cross-correlation of ``(…, in_channels, *spatial)`` with ``weight``, plus ``bias`` for each channel.

    The weight is (out_channels, in_channels / groups, *kernel_size). ``padding="same"`` keeps the spatial sizes, the
    larger border behind, and needs stride 1; ``"valid"`` is 0; pairs give each axis its border (before, behind). What
    stands there ``padding_mode`` says: "zeros", the outermost elements for "replicate", those mirrored at the outermost
    for "reflect", those of the other end for "circular". Weight and bias start as in PyTorch.

    Source: torch.nn.Conv1d, Conv2d and Conv3d.
    Shapes: x (*Bs, in_channels, *spatial) -> (*Bs, out_channels, *windows); sizes as in `ops.conv`
    Raises:
        DomainError: ``groups`` does not divide the channels, or ``padding`` does not go with the stride.
        ShapeError: when called, x has other channels, too few axes, or no room for a window.

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
        if self.padding == "same" and {*each(self.stride, 1)} != {1}:
            raise refuse(self, "stride", "1 with padding='same'")

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and, unless switched off, ``bias``."""
        return self._weight_and_bias((self.out_channels, self.in_channels // self.groups))

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, in_channels, *spatial) to (…, out_channels, *spatial)."""
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = self._padded(x), 0
        return ops.conv(x, *self._values(p), self.stride, padding, self.dilation, self.groups)

    def _padded(self, x: AnyVar) -> AnyVar:
        """x between borders of its own elements, as wide as the padding."""
        sides = self._sides(self.sizes(self.kernel_size))
        whole = ((0, 0),) * max(len(x.shape) - len(sides), 0)
        return ops.pad(x, (*whole, *sides), mode=PADDING_MODES[self.padding_mode])

    def _sides(self, kernel: Sizes) -> tuple[tuple[int, int], ...]:
        if not isinstance(self.padding, str):
            return per_side(self.padding, len(kernel)) or ()
        dilation = each(self.dilation, len(kernel))
        reach = [d * (k - 1) if self.padding == "same" else 0 for k, d in zip(kernel, dilation, strict=True)]
        return tuple((n // 2, n - n // 2) for n in reach)


@dataclass(frozen=True)
class Conv1d(Conv, axes=1):
    """`Conv` over one axis.

    Source: torch.nn.Conv1d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Conv1d(3, 8, 5).init(seed=0)["weight"].shape
    (8, 3, 5)
    """


@dataclass(frozen=True)
class Conv2d(Conv, axes=2):
    """`Conv` over two axes.

    Source: torch.nn.Conv2d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Conv2d(3, 8, 5).init(seed=0)["weight"].shape
    (8, 3, 5, 5)
    """


@dataclass(frozen=True)
class ConvTranspose(Convolution, kinds={"padding": BORDER, "output_padding": EachAxis(0, "kernel_size")}):
    """The gradient of `Conv` with respect to its input, as a layer that enlarges; plus ``bias`` for each channel.

    The weight is (in_channels, out_channels / groups, *kernel_size); weight and bias start as in PyTorch.

    Source: torch.nn.ConvTranspose1d, ConvTranspose2d and ConvTranspose3d.
    Shapes: x (*Bs, in_channels, *spatial) -> (*Bs, out_channels, *windows); sizes as in `ops.conv_transpose`
    Raises:
        DomainError: ``groups`` does not divide the channels.
        ShapeError: when called, x has other channels or too few axes, or no elements would be left of it.

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

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and, unless switched off, ``bias``."""
        return self._weight_and_bias((self.in_channels, self.out_channels // self.groups))

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, in_channels, *spatial) to (…, out_channels, *spatial)."""
        weight, bias = self._values(p)
        return ops.conv_transpose(
            x, weight, bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )


@dataclass(frozen=True)
class ConvTranspose1d(ConvTranspose, axes=1):
    """`ConvTranspose` over one axis.

    Source: torch.nn.ConvTranspose1d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ConvTranspose1d(3, 8, 5).init(seed=0)["weight"].shape
    (3, 8, 5)
    """


@dataclass(frozen=True)
class ConvTranspose2d(ConvTranspose, axes=2):
    """`ConvTranspose` over two axes.

    Source: torch.nn.ConvTranspose2d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ConvTranspose2d(3, 8, 5).init(seed=0)["weight"].shape
    (3, 8, 5, 5)
    """
