"""Spatial axes of other sizes, made from the elements that there are, and borders around them."""

from dataclasses import KW_ONLY, dataclass
from math import inf, nan

from .... import ops
from ....errors import DomainError
from ....numerics.sizes import Sizes
from ....record.kinds.values import Values
from ....var.var import AnyVar
from ...context import Context
from ...kinds import SIZE, Both
from ...layer import Layer
from ...op_layer import FloatOpLayer, OpLayer
from ...scope import Params
from .spatial import KERNEL

SCALES = Values(
    "a tuple of finite numbers above 0, one for each axis",
    lambda scales: bool(scales) and all(0 < scale < inf for scale in scales),
    ((), (0.0,), (2.0, -1.0), (inf,), (1.0, nan)),
)
TWO = Values("a tuple of two ints", lambda sizes: len(sizes) == 2, ((3, 3, 3), (3,)))
PAIRS = Values(
    "a tuple of pairs (before, behind)", lambda pairs: all(len(pair) == 2 for pair in pairs), (((1, 2, 3),), ((1,),))
)


class Resized(FloatOpLayer):
    """Axes of other sizes.

    Raises:
        ShapeError: when called, x has too few axes, or an empty one.
    """


@dataclass(frozen=True)
class Upsample(Resized, op=ops.interpolate, kinds={"size": KERNEL, "scale_factor": SCALES}):
    """The last axes with other sizes, ``size`` or ``scale_factor`` times their own, by a mode of `ops.interpolate`.

    Source: torch.nn.Upsample; ``antialias`` is that of torch.nn.functional.interpolate.
    Shapes: x (*Bs, *spatial) -> (*Bs, *sizes); ``size``, or each spatial size times its ``scale_factor``, rounded down
    Raises:
        DomainError: not one of the two is given; or, when called, the mode is none, or it does not take what was given.
        ShapeError: when called, x has too few axes, or an empty one, or the mode takes another number of them.

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
        _require_one(self, "size", "scale_factor")


@dataclass(frozen=True)
class UpsampleNearest(Resized, op=ops.upsample_nearest, kinds={"scale_factor": KERNEL, "size": KERNEL}):
    """Elements repeated: ``scale_factor`` times along each of the last axes, or so that their sizes become ``size``.

    Source: torch.nn.Upsample with mode "nearest".
    Shapes: x (*Bs, *spatial) -> (*Bs, *sizes); ``size``, or each spatial size times its ``scale_factor``
    Raises:
        DomainError: not one of the two is given.

    >>> from dgrr.tape import Tape, nn
    >>> nn.UpsampleNearest((2,))({}, Tape().leaf([1.0, 2.0])).numpy()
    array([1., 1., 2., 2.])
    """

    scale_factor: Sizes | None = None
    size: Sizes | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_one(self, "scale_factor", "size")


@dataclass(frozen=True)
class UpsampleBilinear(Resized, op=ops.upsample_bilinear, kinds={"size": Both(KERNEL, TWO)}):
    """The last two axes interpolated to ``size``; with ``align_corners`` the corners keep their values.

    Source: torch.nn.Upsample with mode "bilinear".
    Shapes: x (*Bs, H, W) -> (*Bs, *size)

    >>> from dgrr.tape import Tape, nn
    >>> nn.UpsampleBilinear((1, 4))({}, Tape().leaf([[0.0, 2.0]])).numpy()
    array([[0. , 0.5, 1.5, 2. ]])
    """

    size: tuple[int, int]
    _: KW_ONLY
    align_corners: bool = False


def _require_one(layer: Upsample | UpsampleNearest, *arguments: str) -> None:
    first, second = (getattr(layer, argument) for argument in arguments)
    if (first is None) == (second is None):
        raise DomainError(
            f"{type(layer).__name__}: arguments {' and '.join(map(repr, arguments))}: expected one of the two, "
            f"got {first!r} and {second!r}"
        )


@dataclass(frozen=True)
class Pad(Layer, kinds={"widths": PAIRS}):
    """The last axes between borders: (before, behind) for each, negative ones cut off, filled as `ops.pad` fills them.

    Source: torch.nn.ZeroPad2d, ConstantPad2d, ReflectionPad2d, ReplicationPad2d, CircularPad2d and their like.
    Shapes: x (*Bs, *spatial) -> (*Bs, *sizes); ``before + size + behind`` on each of as many axes as there are widths
    Dtypes: x and the result float32, float64, int64 or bool, alike.
    Raises:
        DomainError: when called, ``mode`` is none.
        ShapeError: when called, x has fewer axes than widths, or fewer elements than are cut off.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Pad(((2, 1),), mode="reflect")({}, Tape().leaf([1.0, 2.0, 3.0])).numpy()
    array([3., 2., 1., 2., 3., 2.])
    """

    widths: tuple[tuple[int, int], ...]
    value: float = 0.0
    mode: str = "constant"

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, *spatial) to (…, *spatial)."""
        return ops.pad(x, ((0, 0),) * (len(x.shape) - len(self.widths)) + self.widths, self.value, self.mode)


@dataclass(frozen=True)
class PixelShuffle(OpLayer, op=ops.pixel_shuffle, kinds={"upscale_factor": SIZE}):
    """Channels spread over planes that are ``upscale_factor`` times as high and wide: `ops.pixel_shuffle`.

    Source: torch.nn.PixelShuffle.
    Shapes: x (*Bs, C, H, W) -> (*Bs, C / r², r H, r W); r is ``upscale_factor``
    Raises:
        ShapeError: when called, x has too few axes, or r² does not divide its channels.

    >>> from dgrr.tape import Tape, nn
    >>> nn.PixelShuffle(2)({}, Tape().leaf(np.zeros((8, 3, 5)))).shape
    (2, 6, 10)
    """

    upscale_factor: int


@dataclass(frozen=True)
class PixelUnshuffle(OpLayer, op=ops.pixel_unshuffle, kinds={"downscale_factor": SIZE}):
    """The inverse of `PixelShuffle`: blocks of cells become channels.

    Source: torch.nn.PixelUnshuffle.
    Shapes: x (*Bs, C, H, W) -> (*Bs, C r², H / r, W / r); r is ``downscale_factor``
    Raises:
        ShapeError: when called, x has too few axes, or r does not divide its height and width.

    >>> from dgrr.tape import Tape, nn
    >>> nn.PixelUnshuffle(2)({}, Tape().leaf(np.zeros((2, 6, 10)))).shape
    (8, 3, 5)
    """

    downscale_factor: int
