"""Upsampling: more elements along the spatial axes, made from those that there are."""

from dataclasses import KW_ONLY, dataclass

from ... import ops
from ...errors import DomainError
from ...numerics.sizes import Sizes
from ...var.var import AnyVar
from ..checks import Spatial, refuse
from ..context import Context
from ..layer import Params


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
