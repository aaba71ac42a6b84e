"""Spatial axes of other sizes, made from the elements that there are, and borders around them."""

from dataclasses import KW_ONLY, dataclass
from math import isfinite

from .... import ops
from ....errors import DomainError
from ....numerics.sizes import Sizes
from ....var.var import AnyVar
from ...checks import Spatial, refuse, require_at_least
from ...context import Context
from ...layer import Layer, Params


@dataclass(frozen=True)
class Upsample(Spatial):
    """The last axes with other sizes, ``size`` or ``scale_factor`` times their own, by a mode of `ops.interpolate`.

    Source: torch.nn.Upsample; ``antialias`` is that of torch.nn.functional.interpolate.
    Shapes: x (*Bs, *spatial) -> (*Bs, *sizes); ``size``, or each spatial size times its ``scale_factor``, rounded down
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: not one of the two is given, or it is not in its range; when called, the mode is none, or it does
            not take what was given.
        ShapeError: when called, x has too few axes, or an empty one, or the mode takes another number of them.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Upsample(scale_factor=(1.5,), mode="linear", align_corners=True)({}, Tape().leaf([0.0, 4.0])).numpy()
    array([0., 2., 4.])
    """

    size: Sizes | None = None
    scale_factor: tuple[float, ...] | None = None
    mode: str = "nearest"
    _: KW_ONLY
    align_corners: bool = False
    antialias: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.scale_factor is None) == (self.size is None):
            raise DomainError(
                "Upsample: arguments 'size' and 'scale_factor': expected one of the two, "
                f"got {self.size!r} and {self.scale_factor!r}"
            )
        if self.size is not None:
            self.numbers("size", 1, None)
        elif not self.scale_factor or not all(isfinite(scale) and scale > 0 for scale in self.scale_factor):
            raise refuse(self, "scale_factor", "a tuple of finite numbers above 0, one for each axis")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, *spatial) to (…, *spatial)."""
        return ops.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.antialias)


@dataclass(frozen=True)
class UpsampleNearest(Spatial):
    """Elements repeated: ``scale_factor`` times along each of the last axes, or so that their sizes become ``size``.

    Source: torch.nn.Upsample with mode "nearest".
    Shapes: x (*Bs, *spatial) -> (*Bs, *sizes); ``size``, or each spatial size times its ``scale_factor``
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: not one of the two is given, or it is no tuple of ints of at least 1.
        ShapeError: when called, x has too few axes, or an empty one.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.UpsampleNearest((2,))({}, Tape().leaf([1.0, 2.0])).numpy()
    array([1., 1., 2., 2.])
    """

    scale_factor: Sizes | None = None
    size: Sizes | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.scale_factor is None) == (self.size is None):
            raise DomainError(
                "UpsampleNearest: arguments 'scale_factor' and 'size': expected one of the two, "
                f"got {self.scale_factor!r} and {self.size!r}"
            )
        self.numbers("size" if self.scale_factor is None else "scale_factor", 1, None)

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, *spatial) to (…, *spatial)."""
        return ops.upsample_nearest(x, self.scale_factor, self.size)


@dataclass(frozen=True)
class UpsampleBilinear(Spatial):
    """The last two axes interpolated to ``size``; with ``align_corners`` the corners keep their values.

    Source: torch.nn.Upsample with mode "bilinear".
    Shapes: x (*Bs, H, W) -> (*Bs, *size)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: ``size`` is no tuple of two ints of at least 1.
        ShapeError: when called, x has too few axes, or an empty one.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.UpsampleBilinear((1, 4))({}, Tape().leaf([[0.0, 2.0]])).numpy()
    array([[0. , 0.5, 1.5, 2. ]])
    """

    size: tuple[int, int]
    _: KW_ONLY
    align_corners: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.numbers("size", 1, None)) != 2:
            raise refuse(self, "size", "a tuple of two ints")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, h, w) to (…, *size)."""
        return ops.upsample_bilinear(x, self.size, self.align_corners)


@dataclass(frozen=True)
class Pad(Layer):
    """The last axes between borders: (before, behind) for each, negative ones cut off, filled as `ops.pad` fills them.

    Source: torch.nn.ZeroPad2d, ConstantPad2d, ReflectionPad2d, ReplicationPad2d, CircularPad2d and their like.
    Shapes: x (*Bs, *spatial) -> (*Bs, *sizes); ``before + size + behind`` on each of as many axes as there are widths
    Dtypes: x and the result float32, float64, int64 or bool, alike.
    Raises:
        DomainError: ``widths`` is no tuple of pairs; when called, ``mode`` is none.
        ShapeError: when called, x has fewer axes than widths, or fewer elements than are cut off.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Pad(((2, 1),), mode="reflect")({}, Tape().leaf([1.0, 2.0, 3.0])).numpy()
    array([3., 2., 1., 2., 3., 2.])
    """

    widths: tuple[tuple[int, int], ...]
    value: float = 0.0
    mode: str = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(len(pair) != 2 for pair in self.widths):
            raise refuse(self, "widths", "a tuple of pairs (before, behind)")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, *spatial) to (…, *spatial)."""
        return ops.pad(x, ((0, 0),) * (len(x.shape) - len(self.widths)) + self.widths, self.value, self.mode)


@dataclass(frozen=True)
class PixelShuffle(Layer):
    """Channels spread over planes that are ``upscale_factor`` times as high and wide: `ops.pixel_shuffle`.

    Source: torch.nn.PixelShuffle.
    Shapes: x (*Bs, C, H, W) -> (*Bs, C / r², r H, r W); r is ``upscale_factor``
    Dtypes: x and the result float32, float64, int64 or bool, alike.
    Raises:
        DomainError: the factor is no int of at least 1.
        ShapeError: when called, x has too few axes, or r² does not divide its channels.

    >>> from dgrr.tape import Tape, nn
    >>> nn.PixelShuffle(2)({}, Tape().leaf(np.zeros((8, 3, 5)))).shape
    (2, 6, 10)
    """

    upscale_factor: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 1, "upscale_factor")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, C, H, W) to (…, C / r², r H, r W)."""
        return ops.pixel_shuffle(x, self.upscale_factor)


@dataclass(frozen=True)
class PixelUnshuffle(Layer):
    """The inverse of `PixelShuffle`: blocks of cells become channels.

    Source: torch.nn.PixelUnshuffle.
    Shapes: x (*Bs, C, H, W) -> (*Bs, C r², H / r, W / r); r is ``downscale_factor``
    Dtypes: x and the result float32, float64, int64 or bool, alike.
    Raises:
        DomainError: the factor is no int of at least 1.
        ShapeError: when called, x has too few axes, or r does not divide its height and width.

    >>> from dgrr.tape import Tape, nn
    >>> nn.PixelUnshuffle(2)({}, Tape().leaf(np.zeros((2, 6, 10)))).shape
    (8, 3, 5)
    """

    downscale_factor: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 1, "downscale_factor")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, C, H, W) to (…, C r², H / r, W / r)."""
        return ops.pixel_unshuffle(x, self.downscale_factor)
